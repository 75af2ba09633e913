# Types each line in an interactive zsh, asks for its completion and prints what stands there then.
# usage: zsh -f zsh_completion.zsh FOLDER LINE...   FOLDER: of the completion functions
emulate -R zsh
zmodload zsh/zpty
folder=$1
shift
for text in "$@"; do
    zpty inner zsh -f -i
    # the key ^X completes, prints the line and ends the shell; what it prints is told from what is typed by the brackets
    zpty -w inner "TERM=dumb; PS1=; fpath=(${(q)folder} \$fpath); autoload -Uz compinit; compinit -u -D
show() { zle complete-word; print -r -- \"<\${BUFFER}>\"; exit }
zle -N show; bindkey '^X' show"
    zpty -w -n inner "$text"$'\x18'
    all=""
    while zpty -r inner piece; do all+=$piece; done
    zpty -d inner
    all=${(M)${(f)all}:#*'<1bit'*}
    print -r -- "${${all##*<}%%>*}"
done
