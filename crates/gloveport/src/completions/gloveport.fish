# Completions of gloveport for fish. In ~/.config/fish/config.fish:
#   gloveport completions fish | source
function __gloveport_complete
    set -l token (commandline --current-token --cut-at-cursor)
    set -l answer (command gloveport completions fish -- \
        (commandline --current-process --tokenize --cut-at-cursor) "$token" 2>/dev/null </dev/null)
    # The shell itself completes the names of files, and quotes them.
    switch "$answer[1]"
        case files
            __fish_complete_path "$token"
        case directories
            __fish_complete_directories "$token"
        case '*'
            string join \n -- $answer[2..]
    end
end
complete --command gloveport --no-files --arguments '(__gloveport_complete)'
