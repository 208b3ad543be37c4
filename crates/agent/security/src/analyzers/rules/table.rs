//! The rules: what each is called, how dangerous what it describes is, and what to do instead.

use gloveport_protocol::SecurityRisk::{self, High, Medium};

use crate::analyzer::RuleMatch;

/// Longest quotation of an action, in characters.
const QUOTE: usize = 160;

/// Declares the rules, in the order in which the documentation lists them.
macro_rules! rules {
    ($($rule:ident = $name:literal, $risk:ident, $what:literal, $advice:literal;)+) => {
        /// A rule.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(super) enum Rule {
            $(#[doc = $what] $rule,)+
        }

        impl Rule {
            /// Every rule.
            #[cfg(test)]
            pub(super) const ALL: &'static [Self] = &[$(Self::$rule,)+];

            /// Its name, for agents, users and documentation.
            pub(super) const fn name(self) -> &'static str {
                match self { $(Self::$rule => $name,)+ }
            }

            /// How dangerous it is.
            pub(super) const fn risk(self) -> SecurityRisk {
                match self { $(Self::$rule => $risk,)+ }
            }

            /// What happens, to follow a quotation.
            const fn what(self) -> &'static str {
                match self { $(Self::$rule => $what,)+ }
            }

            /// What to do instead.
            const fn advice(self) -> &'static str {
                match self { $(Self::$rule => $advice,)+ }
            }
        }
    };
}

rules! {
    // Destruction.
    DeleteRoot = "delete-root", High, "deletes the root of the file system",
        "delete only what this task made, by its full path";
    DeleteHome = "delete-home", High, "deletes a home directory",
        "delete only what this task made, by its full path";
    DeleteSystem = "delete-system", High, "deletes a directory of the system",
        "delete only what this task made; remove software with the package manager";
    DeleteRepository = "delete-repository", High, "deletes the history of a repository",
        "leave `.git` alone; make a new clone next to it if it is broken";
    DeleteWorkspace = "delete-workspace", Medium, "deletes everything in the workspace",
        "delete the files by their names";
    DeleteOutside = "delete-outside", Medium, "deletes files outside of the workspace",
        "delete only files in the workspace or in `/tmp`";
    DeleteUnset = "delete-unset", Medium, "deletes from the root of the file system if a variable is empty",
        "write `${NAME:?}`, or the path itself";
    OverwriteDevice = "overwrite-device", High, "writes to a disk directly",
        "write to a file";
    MakeFilesystem = "make-filesystem", High, "makes a new file system, which deletes the old one",
        "use a file as the disk, in `/tmp`";
    Shred = "shred", Medium, "overwrites files so that they cannot be restored",
        "delete them with `rm`";
    ForkBomb = "fork-bomb", High, "starts processes without end",
        "start a fixed number of processes";
    OpenPermissions = "open-permissions", High, "lets everyone change files of the system or of a home directory",
        "give the one file the permission that it needs";
    OpenWorkspace = "open-workspace", Medium, "lets everyone change a whole tree",
        "give the one file the permission that it needs";
    ChangeOwner = "change-owner", High, "changes the owner of files of the system or of a home directory",
        "change the owner of the one file that needs it";
    ForcePush = "force-push", High, "overwrites the history of a remote repository",
        "push to a new branch";
    ReplaceRemote = "replace-remote", Medium, "changes or deletes branches of a remote repository",
        "push to a new branch";
    DiscardChanges = "discard-changes", Medium, "discards changes that were not committed, or history",
        "keep them with `git stash` or on a branch";
    KillAll = "kill-all", High, "ends every process",
        "end the one process by its id";
    Shutdown = "shutdown", High, "stops the machine",
        "ask the user";
    DestroyService = "destroy-service", Medium, "deletes data or machines of a service",
        "ask the user first";
    // Secrets that leave.
    UploadSecret = "upload-secret", High, "sends a secret over the network",
        "leave secrets where they are; ask the user to do this";
    ReadSecret = "read-secret", Medium, "shows a secret",
        "use the tool that needs the secret, without looking at it";
    TokenInRequest = "token-in-request", Medium, "sends a token over the network",
        "use a tool that knows the token itself, such as `gh` or a credential helper";
    UploadFile = "upload-file", Medium, "sends a file over the network",
        "ask the user whether the file may leave";
    ReverseShell = "reverse-shell", High, "gives a shell to another machine",
        "ask the user";
    // Foreign code.
    RunDownload = "run-download", High, "runs what it has just downloaded",
        "download to a file, read it, and run it in an action of its own";
    RunDecoded = "run-decoded", Medium, "runs commands that cannot be read before they run",
        "write the commands as they are";
    // Places.
    WriteOutside = "write-outside", Medium, "writes outside of the workspace",
        "write to the workspace or to `/tmp`";
    WriteSystem = "write-system", High, "changes a file on which the system depends",
        "ask the user";
    // Rights.
    Privilege = "privilege", Medium, "runs a command with other rights",
        "do without if the command works without";
    GrantPrivilege = "grant-privilege", High, "gives someone the rights of root",
        "ask the user";
    ChangeAccount = "change-account", Medium, "changes accounts or rights",
        "ask the user";
    PrivilegedContainer = "privileged-container", Medium, "starts a container that can change its host",
        "mount only the directory that is needed";
    AuthorizedKeys = "authorized-keys", High, "lets someone log in",
        "ask the user";
    DisableProtection = "disable-protection", Medium, "turns a protection of the system off",
        "ask the user";
    // What stays.
    Persistence = "persistence", Medium, "makes something run later, outside of this task",
        "run it now, or ask the user";
    // What could not be judged.
    Unparsable = "unparsable", Medium, "cannot be read as shell commands",
        "write it in a simpler way, or put it into a file and run that";
    TooComplex = "too-complex", Medium, "is too long or too deep to be judged",
        "split it, or put it into a file and run that";
}

impl Rule {
    /// The finding for an action in which this was seen.
    pub(super) fn seen(self, quotation: &str) -> RuleMatch {
        let quotation = quote(quotation);
        let explanation = format!("`{quotation}` {}; {}.", self.what(), self.advice());
        RuleMatch { rule: self.name(), risk: self.risk(), explanation }
    }
}

/// A text on one line, and not too long.
fn quote(text: &str) -> String {
    let mut line: String = text.chars().take(QUOTE).map(|one| if one.is_control() { ' ' } else { one }).collect();
    if text.chars().nth(QUOTE).is_some() {
        line.push('…');
    }
    line
}
