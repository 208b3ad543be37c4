# Completions of gloveport for bash 4.4 and later. In ~/.bashrc:
#   source <(gloveport completions bash)
_gloveport() {
    local -a answer=()
    mapfile -t answer < <(command gloveport completions bash --breaks="$COMP_WORDBREAKS" \
        --line="${COMP_LINE:0:COMP_POINT}" 2>/dev/null </dev/null)
    COMPREPLY=("${answer[@]:1}")
    # The shell itself completes the names of files, and quotes them.
    case ${answer[0]-} in
    files) compopt -o default ;;
    directories) compopt -o dirnames ;;
    open) compopt -o nospace ;;
    esac
}
complete -F _gloveport gloveport
