#compdef gloveport
# Completions of gloveport for zsh. In ~/.zshrc, behind compinit:
#   source <(gloveport completions zsh)
_gloveport() {
    local -a answer values shown
    local row
    answer=("${(@f)$(command gloveport completions zsh -- "${(@Q)words[1,CURRENT-1]}" "${(Q)PREFIX}" \
        2>/dev/null </dev/null)}")
    for row in "${(@)answer[2,-1]}"; do
        values+=("${row%%$'\t'*}")
        shown+=("${row/$'\t'/  -- }")
    done
    # The shell itself completes the names of files, and quotes them.
    case $answer[1] in
    files) compset -P '*[=:]'; _files ;;
    directories) compset -P '*='; _files -/ ;;
    open) compadd -l -S '' -d shown -a -- values ;;
    words) compadd -l -d shown -a -- values ;;
    esac
}
if [[ ${funcstack[1]-} == _gloveport ]]; then
    _gloveport "$@"
else
    compdef _gloveport gloveport
fi
