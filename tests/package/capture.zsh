# zsh -f capture.zsh FOLDER LINE: prints what zsh, with FOLDER among its functions, offers after LINE.
zmodload zsh/zpty
zpty shell zsh -f -i
ask() { zpty -w shell "$1" }
ask 'PROMPT=; unsetopt zle_bracketed_paste 2>/dev/null; stty -echo 2>/dev/null; unset zle_bracketed_paste'
ask "fpath=(${(q)1} \$fpath); autoload -Uz compinit; compinit -u -D"
ask 'zstyle ":completion:*" list-prompt ""; zstyle ":completion:*" insert-tab false; LISTMAX=10000'
# Instead of showing matches, each call of compadd prints them.
ask 'compadd() {
    if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then builtin compadd "$@"; return; fi
    local -a found; builtin compadd -A found "$@"; builtin compadd "$@"
    local one; for one in $found; do print -r -- "offer<$one>"; done
}'
ask 'finish() { compstate[insert]=; compstate[list]=; print -r -- "over<>" }; comppostfuncs=(finish)'
ask 'offer() { comppostfuncs=(finish); zle complete-word }; zle -N offer; bindkey "^I" offer; print ready""'
integer waited=0
while zpty -r shell line; do [[ $line == *ready* && $line != *print* ]] && break; done
zpty -w -n shell "$2"$'\t'
while zpty -r shell line; do
    line=${line//$'\r'/}
    [[ $line == *'offer<'* ]] && print -r -- ${${line##*offer<}%%>*}
    [[ $line == *'over<>'* ]] && break
done
zpty -d shell
