# Completion of the command tally for fish. tally.bash and tally.zsh know the same words.
set -l operators sum prod min max and or xor
set -l statistics mean var std norm1 norm2 norminf sumsq dot argmin argmax minmax count nans nonzero any all describe
set -l others devices bench ladder explain report lesson quiz help version
set -l types i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64
set -l rungs sequential interleaved-modulo interleaved-mask interleaved-index contiguous shared-modulo shared-contiguous shared \
    coarsened grid-stride vectorized shuffle single-pass tally

function __tally_first
    test (count (commandline -opc)) = 1
end
# True if the command is one of the arguments.
function __tally_is
    set -l words (commandline -opc)
    test (count $words) -ge 2; and contains -- $words[2] $argv
end
# True if the command is an operator, or several (count,mean): any that is not listed here.
function __tally_reduces
    set -l words (commandline -opc)
    test (count $words) -ge 2; and not contains -- $words[2] devices bench ladder explain report lesson quiz help version
end
function __tally_has_ddof
    set -l words (commandline -opc)
    test (count $words) -ge 2; and string match -qr '(^|,)(var|std|describe)(,|$)' -- $words[2]
end
# Prints the operators before the last comma ("count," of "count,mea"), so that a completion can follow them.
function __tally_several
    set -l word (commandline -ct)
    string match -q '*,*' -- $word; and string replace -r '[^,]*$' '' -- $word
end

complete -c tally -f
complete -c tally -n __tally_first -a "$operators" -d 'of all elements'
complete -c tally -n __tally_first -a "$statistics" -d 'of all elements'
complete -c tally -n __tally_first -a "(__tally_several)\$(string split ' ' '$operators $statistics')" -d 'and this'
complete -c tally -n __tally_first -a devices -d 'what there is to reduce on'
complete -c tally -n __tally_first -a bench -d 'time a reduction'
complete -c tally -n __tally_first -a ladder -d 'the classic GPU kernels'
complete -c tally -n __tally_first -a explain -d 'one of these kernels, or your own, step by step'
complete -c tally -n __tally_first -a report -d 'a page that shows all of them'
complete -c tally -n __tally_first -a lesson -d 'kernels to mend'
complete -c tally -n __tally_first -a quiz -d 'questions about these kernels'
complete -c tally -n __tally_first -a help -d 'explain a command'
complete -c tally -n __tally_first -a version -d 'the version'
complete -c tally -n __tally_first -l version -d 'the version'
complete -c tally -l help -d 'its help'

complete -c tally -n __tally_reduces -F
complete -c tally -n __tally_reduces -l text -d 'numbers as text'
complete -c tally -n __tally_reduces -l raw -d 'raw elements'
complete -c tally -n __tally_reduces -l skip-na -d 'leave out missing values'
complete -c tally -n __tally_reduces -l na -x -d 'words that are missing values'
complete -c tally -n __tally_reduces -l decimal-mark -x -a '. ,' -d 'the mark before decimals'
complete -c tally -n __tally_reduces -l thousands -x -d 'the mark between thousands'
complete -c tally -n __tally_reduces -l decimal -d 'the exact decimal sum'
complete -c tally -n __tally_reduces -l each -d 'a line a file'
complete -c tally -n __tally_reduces -s c -l column -x -d 'a column of a table'
complete -c tally -n __tally_reduces -l by -r -d 'a value for each key of a column, or each id of a file'
complete -c tally -n __tally_reduces -l sort -d 'in order of the keys'
complete -c tally -n __tally_reduces -l header -d 'the first line has names'
complete -c tally -n __tally_reduces -l no-header -d 'it has none'
complete -c tally -n __tally_reduces -s F -l delimiter -x -a 'tab blank' -d 'what parts the fields'
complete -c tally -n __tally_reduces -l axis -x -d 'along these axes'
complete -c tally -n __tally_reduces -l segments -r -d 'of each segment: offsets, or a length'
complete -c tally -n __tally_reduces -l groups -x -d 'ids lie below this'
complete -c tally -n __tally_reduces -l skip-outside -d 'leave out ids that do not'
complete -c tally -n __tally_reduces -l mask -r -d 'leave out elements whose byte is 0'
complete -c tally -n __tally_reduces -s o -r -d 'write the results to a .npy file'
complete -c tally -n __tally_reduces -l out -x -a 'f16 bf16 f32 f64' -d 'round to this type'
complete -c tally -n __tally_has_ddof -l ddof -x -d 'the correction of the variance'
complete -c tally -n '__tally_is bench' -a "$operators $statistics"
complete -c tally -n '__tally_is bench' -l data -x -a 'uniform normal loguniform wild' -d 'how floating elements are spread'
complete -c tally -n '__tally_is bench' -l shape -x -d 'an array of this shape'
complete -c tally -n '__tally_is bench' -l axis -x -d 'along these axes'
complete -c tally -n '__tally_is bench' -l segments -x -a 'zipf giant empty' -d 'segments of this length, or skew'
complete -c tally -n '__tally_is bench' -l groups -x -d 'so many groups'
complete -c tally -n '__tally_is bench' -l ids -x -a 'random sorted zipf' -d 'how ids come'
complete -c tally -n '__tally_is bench' -l repeat -x -d 'so many rounds'
complete -c tally -n '__tally_is bench; or __tally_reduces' -l fast -d 'plain, unordered additions'
complete -c tally -n '__tally_is bench; or __tally_reduces' -l threads -x -d 'of the cpu'
complete -c tally -n '__tally_is bench; or __tally_reduces' -l device -x -a 'auto cpu cuda opencl model'
complete -c tally -n '__tally_is ladder' -l device -x -a 'cuda opencl model cpu'
complete -c tally -n '__tally_is ladder' -l only -x -a "$rungs" -d 'these rungs only'
complete -c tally -n '__tally_is ladder' -l list -d 'the rungs, and run none'
complete -c tally -n '__tally_is explain ladder' -a "$rungs"
complete -c tally -n '__tally_is report' -s o -l output -r -F -d 'the page'
complete -c tally -n '__tally_is report' -l measure -d 'the ladder on this machine, too'
complete -c tally -n '__tally_is report' -l device -x -a 'cuda opencl cpu' -d 'for --measure'
complete -c tally -n '__tally_is explain' -l device -x -a 'cuda opencl' -d 'where your kernel runs, too'
complete -c tally -n '__tally_is explain' -l draw -d 'elements and threads of each step'
complete -c tally -n '__tally_is explain' -l svg -r -F -d 'the same as a picture'
complete -c tally -n '__tally_is explain' -l steps -d 'accesses of each lane, with --json'
complete -c tally -n '__tally_is ladder explain' -l op -x -a "$operators" -d 'the operator'
complete -c tally -n '__tally_is ladder explain' -l block -x -d 'threads of a block'
complete -c tally -n '__tally_is ladder explain' -l coarsen -x -d 'pairs of elements a thread adds'
complete -c tally -n '__tally_is ladder explain' -l finish -x -a 'relaunch atomic host' -d "how blocks' results meet"
complete -c tally -n '__tally_is ladder explain' -l kernel -r -d 'a kernel of your own'
complete -c tally -n '__tally_is ladder explain' -l grid -x -d 'blocks of the launch'
complete -c tally -n '__tally_is ladder explain' -l length -x -a block -d 'what is passed for n'
complete -c tally -n '__tally_is ladder explain' -l shared -x -d 'bytes of the launch'
complete -c tally -n '__tally_is ladder explain' -s D -l define -x -d 'a name for the text'
complete -c tally -n '__tally_is ladder explain' -l seed -x -d 'of data and orders'
complete -c tally -n '__tally_is lesson' -l hint -d 'a hint'
complete -c tally -n '__tally_is lesson' -l answer -d 'a repaired kernel'
complete -c tally -n '__tally_is lesson' -a '(seq 21)'
complete -c tally -n '__tally_is quiz' -l answer -x -d 'the answer'
complete -c tally -n '__tally_is quiz' -l explain -d 'the answer and why'
complete -c tally -n '__tally_is quiz' -l list -d 'the questions'
complete -c tally -n '__tally_is bench ladder explain' -s n -l n -x -d 'so many elements'
complete -c tally -n '__tally_is bench ladder explain; or __tally_reduces' -l dtype -x -a "$types" -d 'the type of the elements'
complete -c tally -n '__tally_is devices bench ladder explain lesson; or __tally_reduces' -l json -d 'as JSON'
complete -c tally -n '__tally_is help' -a "$operators $statistics $others"
