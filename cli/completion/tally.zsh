#compdef tally
# Completion of the command tally for zsh. tally.bash and tally.fish know the same words.
_tally() {
    local -a operators names statistics others types rungs numbers climb own
    operators=(
        'sum:the exact sum, rounded once' 'prod:the product' 'min:the least' 'max:the greatest'
        'and:the bits set in all' 'or:the bits set in any' 'xor:the bits set in an odd number')
    names=(${operators%%:*})
    statistics=(
        'mean:the exact mean, rounded once' 'var:the variance' 'std:the standard deviation'
        'norm1:the sum of magnitudes' 'norm2:the Euclidean norm' 'norminf:the greatest magnitude'
        'sumsq:the sum of squares' 'dot:the dot product of two inputs' 'argmin:where the least is'
        'argmax:where the greatest is' 'minmax:the least and the greatest' 'count:how many there are'
        'nans:how many are NaN' 'nonzero:how many are not zero' 'any:whether one is not zero'
        'all:whether none is zero' 'describe:several statistics at once')
    others=(
        'devices:what there is to reduce on' 'bench:time a reduction' 'ladder:the classic GPU kernels'
        'explain:one of these kernels, or your own, step by step' 'report:a page that shows all of them'
        'lesson:kernels to mend' 'quiz:questions about these kernels' 'help:explain a command' 'version:the version')
    types=(i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64)
    rungs=(sequential interleaved-modulo interleaved-mask interleaved-index contiguous shared-modulo shared-contiguous
        shared coarsened grid-stride vectorized shuffle single-pass tally)
    numbers=('(-n --n)'{-n,--n}'[so many elements]:number')
    climb=($numbers '--op[the operator]:operator:($names)' '--dtype[the elements'\'' type]:type:($types)'
        '--block[threads of a block]:number' '--coarsen[pairs of elements a thread adds]:number'
        '--finish[how blocks'\'' results meet]:finish:(relaunch atomic host)' '--json[one JSON object]' '--help[its help]')

    own=('--kernel[a kernel of your own]:file:_files -g "*.cu"' '--grid[blocks of the launch]:number'
        '--length[what is passed for n]:number or block' '--shared[bytes of the launch]:number'
        '(-D --define)'{-D+,--define=}'[a name for the text]:name=value' '--seed[of data and orders]:number')

    if (( CURRENT == 2 )); then
        if compset -P '*,'; then # the last of several statistics
            _describe operator operators -- statistics
        elif [[ $PREFIX == -* ]]; then
            _arguments '--help[the commands]' '--version[the version]'
        else
            _describe command operators -- statistics -- others
        fi
        return
    fi
    local command=$words[2]
    shift words
    (( CURRENT-- ))
    case $command in
    devices) _arguments '--json[an array of objects]' '--help[its help]' ;;
    bench)
        _arguments $numbers '--dtype[the elements'\'' type]:type:($types)' \
            '--data[how floating elements are spread]:kind:(uniform normal loguniform wild)' \
            '--shape[an array of this shape]:lengths' '--axis[along these axes]:axes' \
            '--segments[segments of this length, or skew]:length:(zipf giant empty)' \
            '--groups[so many groups]:number' '--ids[how ids come]:kind:(random sorted zipf)' \
            '--device[where]:device:(auto cpu cuda opencl model)' '--threads[of the cpu]:number' \
            '--fast[plain, unordered additions]' '--repeat[so many rounds]:number' '--json[one JSON object]' \
            '--help[its help]' ':operator:($names ${statistics%%:*})' ;;
    ladder)
        _arguments $climb $own '--device[where]:device:(cuda opencl model cpu)' \
            '--list[the rungs, and run none]' '*--only[these rungs only]:rung:($rungs)' '*:rung:($rungs)' ;;
    explain)
        _arguments $climb $own '--device[where your kernel runs, too]:device:(cuda opencl)' '--draw[elements and threads of each step]' '--svg[the same as a picture]:file:_files' \
            '--steps[accesses of each lane, with --json]' ':rung:($rungs)' ;;
    report)
        _arguments '(-o --output)'{-o,--output}'[the page]:file:_files' '--measure[the ladder on this machine, too]' \
            '--device[for --measure]:device:(cuda opencl cpu)' '--help[its help]' ;;
    lesson) _arguments '*--hint[a hint]' '--answer[a repaired kernel]' '--json[as JSON]' '--help[its help]' ':lesson:({1..21})' ':your kernel:_files -g "*.cu"' ;;
    quiz) _arguments '--answer[the answer]:number' '--explain[the answer and why]' '--list[the questions]' '--help[its help]' ':question:' ;;
    help) (( CURRENT > 2 )) || _describe command operators -- statistics -- others ;;
    version) ;;
    *)
        local -a more
        [[ ,$command, != *,(var|std|describe),* ]] || more=('--ddof[the correction of the variance]:number')
        _arguments '--dtype[the elements'\'' type]:type:($types)' '--text[numbers as text]' '--raw[raw elements]' \
            '--skip-na[leave out missing values]' '--na[words that are missing values]:words' \
            '--decimal-mark[the mark before decimals]:mark:(. ,)' '--thousands[the mark between thousands]:character' \
            '--decimal[the exact decimal sum]' '--each[a line a file]' \
            '(-c --column)'{-c,--column}'[a column of a table]:column' '--by[a value for each key of a column, or id of a file]:column or file:_files' \
            '--axis[along these axes]:axes' '--segments[of each segment]:offsets or length:_files' \
            '--groups[ids lie below this]:number' '--skip-outside[leave out ids that do not]' \
            '--mask[leave out elements whose byte is 0]:file:_files' '-o[write the results to a .npy file]:file:_files' \
            '--sort[in order of the keys]' '--header[the first line has names]' '--no-header[it has none]' \
            '(-F --delimiter)'{-F,--delimiter}'[what parts the fields]:character:(tab blank)' \
            '--out[round to this type]:type:(f16 bf16 f32 f64)' '--fast[plain, unordered additions]' \
            '--device[where]:device:(auto cpu cuda opencl model)' '--threads[of the cpu]:number' \
            '--json[one JSON object]' '--help[its help]' $more '*:file:_files' ;;
    esac
}
[ "$funcstack[1]" != _tally ] || _tally "$@"
