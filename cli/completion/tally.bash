# Completion of the command tally for bash. tally.zsh and tally.fish know the same words.
_tally() {
    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]}
    local operators='sum prod min max and or xor'
    local statistics='mean var std norm1 norm2 norminf sumsq dot argmin argmax minmax count nans nonzero any all describe'
    local types='i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64'
    local rungs='sequential interleaved-modulo interleaved-mask interleaved-index contiguous shared-modulo shared-contiguous
        shared coarsened grid-stride vectorized shuffle single-pass tally'
    local commands="$operators $statistics devices bench ladder explain report lesson quiz help version"
    local own='--kernel --grid --length --shared --define --seed'
    local words='' climb='-n --n --op --dtype --block --coarsen --finish --json --help'
    COMPREPLY=()

    if [ "$COMP_CWORD" = 1 ]; then
        case $current in
        *,*) # the last of several statistics
            words=$(compgen -P "${current%,*}," -W "$operators $statistics" -- "${current##*,}") ;;
        *) words=$(compgen -W "$commands --help --version" -- "$current") ;;
        esac
        COMPREPLY=($words)
        return
    fi
    case $before in # the values of the option before
    --dtype) words=$types ;;
    --out) words='f16 bf16 f32 f64' ;;
    --device) words='auto cpu cuda opencl model' ;;
    --op) words=$operators ;;
    --ids) words='random sorted zipf' ;;
    --data) words='uniform normal loguniform wild' ;;
    --finish) words='relaunch atomic host' ;;
    --only) words=$rungs ;;
    -n | --n | --shape | --threads | --repeat | --block | --coarsen | --ddof | -c | --column | -F | --delimiter | --na | --decimal-mark | --thousands | --axis | --groups | --grid | --length | --shared | -D | --define | --seed | --answer) return ;;
    --by | --segments | --mask | --svg | -o | --output)
        [ "$command $before" != 'bench --segments' ] || { COMPREPLY=($(compgen -W 'zipf giant empty' -- "$current")); return; }
        compopt -o filenames 2>/dev/null
        local IFS=$'\n'
        COMPREPLY=($(compgen -f -- "$current"))
        return ;;
    esac
    case $before in --kernel) compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -X '!*.cu' -- "$current")); return ;; esac
    [ -n "$words" ] || case $command in # the words that the command takes
    devices) words='--json --help' ;;
    bench) words="$operators $statistics --dtype -n --n --data --shape --axis --segments --groups --ids
            --device --threads --fast --repeat --json --help" ;;
    ladder)
        words="--device --only --list $own $climb"
        case " ${COMP_WORDS[*]} $current" in *' --only '*) case $current in -*) ;; *) words=$rungs ;; esac ;; esac ;;
    explain)
        words="$own $climb --draw --svg --steps --device"
        [ "$COMP_CWORD" != 2 ] || words="$rungs $words" ;;
    lesson)
        case $current in
        -*) words='--hint --answer --json --help' ;;
        *)
            [ "$COMP_CWORD" != 2 ] || words=$(echo {1..21})
            [ "$COMP_CWORD" = 2 ] || { compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -X '!*.cu' -- "$current")); return; } ;;
        esac ;;
    quiz) words='--answer --explain --list --help' ;;
    report) words='-o --output --measure --device --help' ;;
    help) [ "$COMP_CWORD" != 2 ] || words=$commands ;;
    version | --*) ;;
    *) # an operator: its options, else files
        case $current in
        -*)
            words='--dtype --text --raw --skip-na --na --decimal --decimal-mark --thousands --each -c --column --by --sort
                --header --no-header -F --delimiter
                --axis --segments --groups --skip-outside --mask -o --out --fast --device --threads --json --help'
            case ,$command, in *,var,* | *,std,* | *,describe,*) words="$words --ddof" ;; esac ;;
        *)
            compopt -o filenames 2>/dev/null
            local IFS=$'\n'
            COMPREPLY=($(compgen -f -- "$current"))
            return ;;
        esac ;;
    esac
    COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -F _tally tally
