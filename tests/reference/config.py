"""The same configuration files and variables, read by the reference and by `gloveport config show --json --all`.

    config.py BINARY

Compares the effective value of every key that both have. Secrets are compared as far as both show them: whether there
is one. Differences that docs/compatibility.md lists are named with the case; a named difference that is none is a
failure, too. Prints one line for each difference that is not listed and, last, `N passed, N failed, N skipped`.
"""

import json
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
import traceback

BINARY = os.path.abspath(sys.argv[1])
HOME = tempfile.mkdtemp(prefix="reference-config-")
for variable in list(os.environ):
    if variable not in ("PATH", "LANG", "LC_ALL", "TMPDIR"):
        os.environ.pop(variable)
os.environ.update(HOME=HOME, LOG_LEVEL="WARNING", PYTHONDONTWRITEBYTECODE="1")
os.chdir(HOME)

import dotenv  # noqa: E402
import jsonschema  # noqa: E402
from openhands.core.config import OpenHandsConfig  # noqa: E402
from openhands.core.config.utils import load_openhands_config  # noqa: E402
from openhands.core.logger import openhands_logger  # noqa: E402
from pydantic import SecretStr  # noqa: E402

MASK = "**********"
SECTIONS = ("sandbox", "security", "mcp", "kubernetes", "cli")
# Values that only one of them has: made at the start, by the place of the package, objects of the agent, or ours alone.
OWN = {
    ("sandbox", "isolation"): "the reference knows no levels of isolation",
    ("sandbox", "allow_origins"): "the reference lets no page of another origin use a sandbox",
    ("core", "jwt_secret"): "made by the reference while it loads, by us when a session starts",
    ("llm", "log_completions_folder"): "a directory of the Python package, and one below the current directory",
}
# Objects there, tables here.
UNUSED = ("condenser", "model_routing")
# Plain texts there, secrets here.
PLAIN_SECRETS = {("sandbox", "api_key")}
SECRET_MAPS = {("sandbox", "runtime_startup_env_vars"), ("core", "file_store_web_hook_headers")}

NO_VALIDATION = "the reference assigns values of [core] as they are, also of a wrong type"
RAW_VARIABLE = "the reference does not look into the elements of a list"

FULL = """
[core]
runtime = "remote"
default_agent = "BrowsingAgent"
file_store = "memory"
file_store_path = "/tmp/store"
file_store_web_hook_url = "https://example.com/hook"
file_store_web_hook_headers = { Authorization = "secret" }
file_store_web_hook_batch = true
enable_browser = false
save_trajectory_path = "trajectories"
save_screenshots_in_trajectory = true
replay_trajectory_path = "t.json"
search_api_key = "tvly-secret"
workspace_mount_path_in_sandbox = "/work"
cache_dir = "CACHE"
run_as_openhands = false
max_iterations = 7
max_budget_per_task = 1.5
init_git_in_empty_workspace = true
disable_color = true
jwt_secret = "secret"
debug = true
file_uploads_max_file_size_mb = 5
file_uploads_restrict_file_types = true
file_uploads_allowed_extensions = [".py", ".md"]
cli_multiline_input = true
conversation_max_age_seconds = 5
enable_default_condenser = false
max_concurrent_conversations = 9
client_wait_timeout = 8
mcp_host = "example.com:80"
git_user_name = "me"
git_user_email = "me@example.com"

[sandbox]
remote_runtime_api_url = "https://runtime.example.com"
local_runtime_url = "http://host"
keep_runtime_alive = true
pause_closed_runtimes = false
rm_all_containers = true
api_key = "secret"
base_container_image = "debian:13"
runtime_container_image = "mine:1"
user_id = 4711
timeout = 30
remote_runtime_init_timeout = 31
remote_runtime_api_timeout = 32
remote_runtime_enable_retries = false
remote_runtime_class = "sysbox"
remote_runtime_resource_factor = 4
enable_auto_lint = true
use_host_network = true
additional_networks = ["a", "b"]
runtime_binding_address = "127.0.0.1"
runtime_extra_build_args = ["--network", "host"]
initialize_plugins = false
force_rebuild_runtime = true
runtime_extra_deps = "RUN true"
runtime_startup_env_vars = { A = "1", B = "two" }
browsergym_eval_env = "browsergym/x"
platform = "linux/arm64"
close_delay = 60
enable_gpu = true
cuda_visible_devices = "0,1"
docker_runtime_kwargs = { shm_size = "1g", init = true, ulimits = [{ name = "nofile", soft = 5 }] }
selected_repo = "a/b"
trusted_dirs = ["/a"]
vscode_port = 4444

[security]
confirmation_mode = true
security_analyzer = "llm"

[kubernetes]
namespace = "agents"
ingress_domain = "example.com"
pvc_storage_size = "5Gi"
pvc_storage_class = "fast"
resource_cpu_request = "2"
resource_memory_request = "3Gi"
resource_memory_limit = "4Gi"
image_pull_secret = "pull"
ingress_tls_secret = "tls"
node_selector_key = "a"
node_selector_val = "b"
tolerations_yaml = "- key: a"
privileged = true

[extended]
anything = { a = [1, 2], b = { c = 2.5, d = true } }
"""

# (name, file, variables, known differences by "section.key")
CASES = [
    ("no file", None, {}, {}),
    ("an empty file", "", {}, {}),
    ("minimal", "[core]\n", {}, {}),
    ("full", FULL, {}, {}),
    ("no [core]", "[sandbox]\ntimeout = 5\n", {}, {}),
    ("broken TOML", "[core\nruntime = 'local'\n", {}, {}),
    ("an unknown key of [core]", "[core]\nruntim = 'local'\nmax_iterations = 5\n", {}, {}),
    ("an unknown section", "[core]\n[sanbox]\ntimeout = 5\n", {}, {}),
    ("a section in capitals", "[core]\n[Sandbox]\ntimeout = 5\n", {}, {}),
    ("wrong types in [core]", "[core]\nmax_iterations = 'many'\ndebug = 'maybe'\ngit_user_name = 5\n", {},
     {"core.max_iterations": NO_VALIDATION, "core.debug": NO_VALIDATION, "core.git_user_name": NO_VALIDATION}),
    ("a wrong type of the runtime", "[core]\nruntime = 5\n", {}, "reference only"),
    ("an integer where a float belongs", "[core]\nmax_budget_per_task = 5\n", {}, {}),
    ("an unknown key of [sandbox]", "[core]\n[sandbox]\ntimeot = 5\n", {}, "fatal"),
    ("a wrong type in [sandbox]", "[core]\n[sandbox]\nplatform = 5\n", {}, "fatal"),
    ("an unknown key of [security]", "[core]\n[security]\nenable_security_analyzer = true\n", {}, "fatal"),
    ("an unknown key of [kubernetes]", "[core]\n[kubernetes]\nnamspace = 'x'\n", {}, "fatal"),
    ("a wrong type in [kubernetes]", "[core]\n[kubernetes]\nprivileged = 'perhaps'\n", {}, "fatal"),
    ("an unknown key of [mcp]", "[core]\n[mcp]\nservers = []\n", {}, "fatal"),
    ("a section replaces the whole section", "[core]\n[sandbox]\nplatform = 'x'\n[security]\n", {}, {}),
    ("lenient values of [sandbox]",
     "[core]\n[sandbox]\ntimeout = '5'\nclose_delay = 5.0\nenable_gpu = 'yes'\nenable_auto_lint = 1\nuser_id = true\n"
     "rm_all_containers = 'OFF'\nvscode_port = ' 5.00 '\nuse_host_network = 0.0\nremote_runtime_api_timeout = '1_000'\n",
     {}, {}),
    ("named groups",
     "[core]\n[llm]\nmodel = 'base'\nnum_retries = 3\napi_key = 'secret'\n[llm.small]\nmodel = 's'\n"
     "[llm.draft_editor]\ncorrect_num = 2\ncompletion_kwargs = { a = { b = 1 } }\n[agent]\nenable_cmd = false\n"
     "llm_config = 'small'\n[agent.RepoAgent]\nenable_cmd = true\nllm_config = 'draft_editor'\n"
     "disabled_microagents = ['x']\n[agent.CodeActAgent]\nenable_jupyter = false\n[agent.Mine]\nenable_mcp = false\n"
     "[agent.Mine.extended]\na = 1\n", {}, {}),
    ("all keys of a model",
     "[core]\n[llm]\nmodel = 'm'\napi_key = 'k'\nbase_url = 'u'\napi_version = 'v'\naws_access_key_id = 'a'\n"
     "aws_secret_access_key = 'b'\naws_region_name = 'c'\nopenrouter_site_url = 'd'\nopenrouter_app_name = 'e'\n"
     "num_retries = 1\nretry_multiplier = 2\nretry_min_wait = 3\nretry_max_wait = 4\ntimeout = 5\nmax_message_chars = 6\n"
     "temperature = 0.7\ntop_p = 0.8\ntop_k = 9\ncustom_llm_provider = 'f'\nmax_input_tokens = 10\nmax_output_tokens = 11\n"
     "input_cost_per_token = 1e-6\noutput_cost_per_token = 2e-6\nollama_base_url = 'g'\ndrop_params = false\n"
     "modify_params = false\ndisable_vision = true\ndisable_stop_word = true\ncaching_prompt = false\nlog_completions = true\n"
     "custom_tokenizer = 'h'\nnative_tool_calling = true\nreasoning_effort = 'high'\nseed = 12\n"
     "safety_settings = [{ category = 'a', threshold = 'b' }]\nfor_routing = true\ncorrect_num = 13\n", {}, {}),
    ("a wrong group is skipped",
     "[core]\n[llm]\nmodel = 'base'\n[llm.bad]\nmodl = 'x'\n[llm.good]\nmodel = 'y'\n[agent.bad]\nfoo = 1\n", {}, {}),
    ("a wrong base of models", "[core]\n[llm]\nmodl = 'x'\nmodel = 'y'\n[llm.good]\nnum_retries = 1\n", {}, {}),
    ("a wrong base of agents", "[core]\n[agent]\nfoo = 1\nenable_cmd = false\n[agent.good]\nenable_mcp = false\n", {}, {}),
    ("a group with the name of its section", "[core]\n[llm]\nmodel = 'a'\n[llm.llm]\nmodel = 'b'\n[llm.x]\nseed = 1\n", {}, {}),
    ("a model of Azure", "[core]\n[llm]\nmodel = 'azure/gpt'\n[llm.other]\napi_version = 'mine'\n", {}, {}),
    ("a table where a key of a model is", "[core]\n[llm]\nmodel = 'a'\ncompletion_kwargs = { seed = 3 }\n", {}, {}),
    ("condenser and routing", "[core]\n[condenser]\ntype = 'noop'\n[model_routing]\nrouter_name = 'noop_router'\n", {}, {}),
    ("the runtime cli has no plugins", "[core]\nruntime = 'CLI'\n[agent.X]\nenable_cmd = false\n", {}, {}),
    ("variables come before the file", "[core]\nruntime = 'local'\nmax_iterations = 5\n[sandbox]\ntimeout = 5\n",
     {"RUNTIME": "remote", "SANDBOX_TIMEOUT": "7", "SANDBOX_PLATFORM": "p", "MAX_BUDGET_PER_TASK": "2"}, {}),
    ("variables of every section", None,
     {"DEBUG": "1", "SECURITY_CONFIRMATION_MODE": "TRUE", "SECURITY_SECURITY_ANALYZER": "invariant",
      "KUBERNETES_NAMESPACE": "n", "KUBERNETES_PRIVILEGED": "true", "CLI_VI_MODE": "true", "LLM_MODEL": "m",
      "LLM_API_KEY": "secret", "LLM_TEMPERATURE": "0.5", "LLM_NUM_RETRIES": "2", "LLM_TOP_K": "3",
      "LLM_DISABLE_VISION": "true", "AGENT_ENABLE_CMD": "false", "AGENT_DISABLED_MICROAGENTS": "['a']",
      "LLM_COMPLETION_KWARGS": "{'a': {'b': [1, None]}}", "LLM_SAFETY_SETTINGS": "[{'a': 'b'}]",
      "SEARCH_API_KEY": "secret", "JWT_SECRET": "secret", "SANDBOX_API_KEY": "secret"}, {}),
    ("empty variables change nothing", "[core]\nruntime = 'local'\n", {"RUNTIME": "", "SANDBOX_TIMEOUT": ""}, {}),
    ("variables that cannot be cast", "[core]\n",
     {"SANDBOX_TIMEOUT": "soon", "MAX_BUDGET_PER_TASK": "much", "LLM_NUM_RETRIES": "1.5"}, {}),
    ("a list as a Python literal", None, {"SANDBOX_RUNTIME_EXTRA_BUILD_ARGS": "['--a', \"b c\", '--d=e']"}, {}),
    ("a map as a Python literal", None, {
        "SANDBOX_DOCKER_RUNTIME_KWARGS":
            "{'mem_limit': '4g', 'cpus': 2, 'init': True, 'x': None, 'y': {'z': [1, 2.5, (3,)]}}",
        "SANDBOX_RUNTIME_STARTUP_ENV_VARS": "{'A': '1', 'B': '2'}",
        "FILE_STORE_WEB_HOOK_HEADERS": "{'X': 'secret'}"}, {}),
    ("a list of numbers where texts belong", None, {"SANDBOX_TRUSTED_DIRS": "[1, True]"},
     {"sandbox.trusted_dirs": RAW_VARIABLE}),
    ("a broken literal", None, {"SANDBOX_TRUSTED_DIRS": "['a'"}, "reference only"),
    ("JSON with its own words", None, {"SANDBOX_DOCKER_RUNTIME_KWARGS": '{"init": true, "x": null}'},
     {"sandbox.docker_runtime_kwargs": "the reference takes no JSON with true, false or null"}),
    ("a variable does not reach a group", "[core]\n[llm.x]\nseed = 1\n[agent.y]\nenable_mcp = false\n",
     {"LLM_MODEL": "m", "AGENT_ENABLE_CMD": "false"}, {}),
    ("servers of MCP",
     "[core]\n[mcp]\nsse_servers = ['http://a/sse', ' http://b ']\n"
     "shttp_servers = [{ url = 'https://d', api_key = 'secret', timeout = 3600 }, { url = 'https://c' }, { url = 'https://c' }]\n"
     "[[mcp.stdio_servers]]\nname = ' a-b_1 '\ncommand = ' npx '\nargs = '-y \"a b\" c'\nenv = 'A=1, B=2=3'\n"
     "[[mcp.stdio_servers]]\nname = 'x'\ncommand = 'uvx'\nargs = ['-y']\nenv = { K = 'v' }\n", {}, {}),
    ("a list of URLs and tables", "[core]\n[mcp]\nsse_servers = ['http://a', { url = 'http://b' }]\n", {},
     {"mcp.sse_servers": "the reference reads no lists of several types, and then nothing of the file"}),
    ("an unknown member of a server", "[core]\n[mcp]\nsse_servers = [{ url = 'http://a', header = 1 }]\n", {}, {}),
    ("servers of MCP by variable",
     "[core]\n[mcp]\nshttp_servers = ['https://old']\nsse_servers = ['https://kept']\n",
     {"MCP_SHTTP_SERVERS": "[{'url': 'https://new', 'api_key': 'k', 'timeout': 5}, {'url': 'https://new'}]",
      "MCP_STDIO_SERVERS": "[{'name': 'a', 'command': 'b', 'args': 'c d', 'env': {'E': 'f'}}]"}, {}),
    ("a wrong server by variable", "[core]\n[mcp]\nsse_servers = ['https://kept']\n",
     {"MCP_SSE_SERVERS": "[{'url': 'no url'}]"}, {}),
    ("volumes with a workspace", "[core]\nworkspace_base = '/other'\n[sandbox]\nvolumes = 'data:/data,./w/../x:/workspace:ro'\n",
     {}, {}),
    ("volumes without a workspace", "[core]\nworkspace_base = '/other'\n[sandbox]\nvolumes = '/a:/data:ro,/b:/workspace/b'\n",
     {}, {}),
    ("volumes by variable", "[core]\n[sandbox]\nvolumes = '/a:/workspace'\n", {"SANDBOX_VOLUMES": "/b:/workspace:rw,/c:/d"}, {}),
    ("a wrong mount", None, {"SANDBOX_VOLUMES": "/a:/workspace,/b"}, "fatal"),
    ("a mount with too many parts", None, {"SANDBOX_VOLUMES": "/a:/workspace:rw:z"}, "fatal"),
    ("empty volumes", "[core]\n[sandbox]\nvolumes = ''\n", {}, "fatal"),
    ("a workspace in the old way", "[core]\nworkspace_base = './w'\n", {}, {}),
    ("a workspace in the old way, empty", "[core]\nworkspace_base = ''\n", {}, {}),
    ("a workspace and its mount", "[core]\nworkspace_base = '/a/b'\nworkspace_mount_path = 'm'\n", {}, {}),
    ("a rewritten workspace", "[core]\nworkspace_base = '/home/me/w'\nworkspace_mount_rewrite = '/home/me:/mnt'\n", {}, {}),
    ("a rewritten mount without a base", "[core]\nworkspace_mount_path = '/a'\nworkspace_mount_rewrite = 'x:/mnt'\n", {}, {}),
    ("a rewriting without a colon", "[core]\nworkspace_base = '/a'\nworkspace_mount_rewrite = 'x'\n", {}, "fatal"),
    ("the old workspace by variable", None, {"WORKSPACE_BASE": "w", "WORKSPACE_MOUNT_PATH_IN_SANDBOX": "/x"}, {}),
]
for entry, message in [
    ("sse_servers = ['']", "URL cannot be empty"),
    ("sse_servers = ['example.com']", "URL must include a scheme (http:// or https://)"),
    ("shttp_servers = ['http://']", "URL must include a valid domain/host"),
    ("shttp_servers = ['localhost:80']", "URL must include a valid domain/host"),
    ("sse_servers = ['ftp://h']", "URL scheme must be http, https, ws, or wss"),
    ("sse_servers = ['http://a', 'http://a']", "Error in MCP sections in config.toml"),
    ("shttp_servers = [{ url = 'http://a', timeout = 0 }]", "Timeout must be positive"),
    ("shttp_servers = [{ url = 'http://a', timeout = 3601 }]", "Timeout cannot exceed 3600 seconds"),
    ("stdio_servers = [{ name = ' ', command = 'a' }]", "Server name cannot be empty"),
    ("stdio_servers = [{ name = 'a b', command = 'a' }]",
     "Server name can only contain letters, numbers, hyphens, and underscores"),
    ("stdio_servers = [{ name = 'a', command = ' ' }]", "Command cannot be empty"),
    ("stdio_servers = [{ name = 'a', command = 'b c' }]",
     "Command should be a single executable without spaces (use arguments field for parameters)"),
    ("[[mcp.stdio_servers]]\nname = 'a'\ncommand = 'b'\nargs = \"'x\"", "Invalid argument format: No closing quotation"),
    ("stdio_servers = [{ name = 'a', command = 'b', env = '=x' }]", "Environment variable key cannot be empty"),
    ("stdio_servers = [{ name = 'a', command = 'b', env = 'x' }]", "must be in KEY=VALUE format"),
    ("stdio_servers = [{ name = 'a', command = 'b', env = '1=x' }]", "Invalid environment variable name"),
]:
    CASES.append((f"[mcp] {entry}", f"[core]\n[mcp]\n{entry}\n", {}, ("fatal", message)))
for text in ["5", " 5 ", "+5", "-5", "1_000", "1__0", "5.0", "5.5", "0x10", "soon", "05", "٣"]:
    known = {"sandbox.timeout": "digits of other alphabets are not read"} if text == "٣" else {}
    CASES.append((f"SANDBOX_TIMEOUT={text!r}", None, {"SANDBOX_TIMEOUT": text}, known))
for text in ["true", "TRUE", "1", "yes", "on", " true", "false", "0", "x"]:
    CASES.append((f"DEBUG={text!r}", None, {"DEBUG": text}, {}))
for text in ["5", "1.5", " 1e3 ", "1_0.5", ".5", "5.", "x"]:
    CASES.append((f"MAX_BUDGET_PER_TASK={text!r}", None, {"MAX_BUDGET_PER_TASK": text}, {}))
for value in ["true", "5", "-1", "5.0", "5.5", "'5'", "'5.5'", "' 5 '", "'x'", "''", "[]", "{}", "1979-05-27", "'1_000'",
              "'0x5'", "'5.'", "'+5'"]:
    for key, kind in [("timeout", "int"), ("enable_gpu", "bool"), ("platform", "str"), ("vscode_port", "int?")]:
        CASES.append((f"[sandbox] {key} = {value}", f"[core]\n[sandbox]\n{key} = {value}\n", {}, "as the reference"))
    for key in ("temperature", "top_k", "timeout", "disable_vision", "api_key", "base_url"):
        if value not in ("{}",):
            CASES.append((f"[llm] {key} = {value}", f"[core]\n[llm]\n{key} = {value}\n", {}, {}))


def plain(value):
    """A value of the reference as JSON, its secrets masked."""
    if isinstance(value, SecretStr):
        return str(value)
    if isinstance(value, dict):
        return {name: plain(member) for name, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(element) for element in value]
    if hasattr(value, "model_dump"):
        return plain(value.model_dump())
    return value


def dump(config):
    values = {"core": {}}
    for key in OpenHandsConfig.model_fields:
        if key in SECTIONS:
            values[key] = plain(getattr(config, key))
        elif key == "extended":
            values[key] = plain(config.extended.model_dump())
        elif key not in ("llms", "agents"):
            values["core"][key] = plain(getattr(config, key))
    for base, groups in (("llm", config.llms), ("agent", config.agents)):
        for name, group in groups.items():
            values[base if name == base else f"{base}.{name}"] = plain(group)
    for section, key in PLAIN_SECRETS:
        values[section][key] = values[section][key] and MASK
    for section, key in SECRET_MAPS:
        if isinstance(values[section][key], dict):
            values[section][key] = {name: value and MASK for name, value in values[section][key].items()}
    for kind in ("sse_servers", "shttp_servers"):
        for server in values["mcp"][kind]:
            server["api_key"] = server["api_key"] and MASK
    for server in values["mcp"]["stdio_servers"]:
        server["env"] = {name: value and MASK for name, value in server["env"].items()}
    return values


def reference(directory, variables):
    """What the reference makes of it: ("values", values, warnings) or ("fatal", text, warnings)."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        warnings = []
        handler = logging.Handler(logging.WARNING)
        handler.emit = lambda record: warnings.append(record.getMessage())
        openhands_logger.addHandler(handler)
        try:
            os.chdir(directory)
            os.environ.update(variables)
            if os.path.exists(".env"):
                dotenv.load_dotenv(".env")
            answer = ["values", dump(load_openhands_config(config_file="config.toml")), warnings]
        except Exception as error:  # whatever ends its start
            answer = ["fatal", "".join(traceback.format_exception(error)), warnings]
        with os.fdopen(writing, "w") as output:
            json.dump(answer, output)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return json.loads(text)


def ours(directory, variables, *words):
    done = subprocess.run(
        [BINARY, "config", *(words or ("show", "--json", "--all"))], cwd=directory, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=60,
        env={"PATH": os.environ["PATH"], "HOME": HOME, **variables},
    )
    if done.returncode != 0:
        return ["fatal", done.stderr]
    return ["values", json.loads(done.stdout)["values"]]


def same(one, other):
    """Equal, and a truth value is not a number."""
    if isinstance(one, bool) != isinstance(other, bool):
        return False
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other


def differences(theirs, mine, toml):
    """Keys with different values."""
    for section in sorted(set(theirs) | set(mine)):
        if section in UNUSED:
            continue
        if section not in theirs or section not in mine:
            yield section, section in theirs, section in mine
            continue
        if section == "extended":
            if not same(theirs[section], mine[section]):
                yield section, theirs[section], mine[section]
            continue
        base = section.split(".")[0]
        for key in sorted(set(theirs[section]) | set(mine[section])):
            if key in UNUSED or (base, key) in OWN and key not in (toml or ""):
                continue
            their_value, my_value = theirs[section].get(key, "(absent)"), mine[section].get(key, "(absent)")
            if not same(their_value, my_value):
                yield f"{section}.{key}", their_value, my_value


class Count:
    passed = failed = 0

    def check(self, name, problems):
        if problems:
            self.failed += 1
            print(f"FAILED  {name}")
            for problem in problems:
                print(f"        {problem}")
        else:
            self.passed += 1


def problems_of(toml, variables, expected):
    with tempfile.TemporaryDirectory(dir=HOME) as directory:
        if toml is not None:
            with open(os.path.join(directory, "config.toml"), "w") as file:
                file.write(toml)
        theirs, mine = reference(directory, variables), ours(directory, variables)
    message = None
    if isinstance(expected, tuple):
        expected, message = expected
    if expected == "as the reference":
        expected = "fatal" if theirs[0] == "fatal" else {}
    if expected in ("fatal", "reference only"):
        wanted = ("fatal", "fatal" if expected == "fatal" else "values")
        if (theirs[0], mine[0]) != wanted:
            return [f"the reference: {theirs[0]}, we: {mine[0]}: {theirs[1]!r:.300} {mine[1]!r:.300}"]
        texts = [theirs[1], mine[1]] if message else []
        return [f"no {message!r} in {text!r}" for text in texts if message not in text]
    if (theirs[0], mine[0]) != ("values", "values"):
        return [f"the reference: {theirs[0]}, we: {mine[0]}: {theirs[1]!r:.300} {mine[1]!r:.300}"]
    found = {place: (their, my) for place, their, my in differences(theirs[1], mine[1], toml)}
    problems = [f"{place}: the reference {their!r}, we {my!r}" for place, (their, my) in found.items() if place not in expected]
    return problems + [f"{place}: no difference any more: {reason}" for place, reason in expected.items() if place not in found]


def our_default_file(count):
    """The reference reads the file that we print, also with every example put in."""
    text = subprocess.run([BINARY, "config", "default"], capture_output=True, text=True, check=True).stdout
    schema = json.loads(subprocess.run([BINARY, "config", "schema"], capture_output=True, text=True, check=True).stdout)
    lines = text.splitlines()
    uncommented = "\n".join(line[1:] if line.startswith("#") and not line.startswith("# ") and line != "#" else line for line in lines)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    for name, content in (("as it is", text), ("with every example", uncommented)):
        with tempfile.TemporaryDirectory(dir=HOME) as directory:
            path = os.path.join(directory, "config.toml")
            with open(path, "w") as file:
                # It refuses a section with a key of ours.
                file.writelines(line for line in content.splitlines(True) if not line.startswith(("isolation =", "allow_origins =")))
            kind, value, warnings = reference(directory, {})
            with open(path, "w") as file:
                file.write(content)
            complaints = [warning for warning in warnings if "nknown" in warning or "annot parse" in warning or "nvalid" in warning]
            count.check(f"the default file, {name}, read by the reference", [value] if kind == "fatal" else complaints)
            if kind == "values":
                mine = ours(directory, {})
                found = list(differences(value, mine[1], content)) if mine[0] == "values" else [mine[1]]
                found = [entry for entry in found if entry[0] not in ("sandbox.isolation", "sandbox.allow_origins")]
                if name == "as it is":
                    found = [entry for entry in found if entry[0] not in ("llm.log_completions_folder", "core.jwt_secret")]
                    found += list(differences(ours(HOME, {})[1], mine[1], None))
                count.check(f"the default file, {name}, gives the same values", [repr(entry) for entry in found])
        found = [f"{error.json_path}: {error.message}" for error in validator.iter_errors(tomllib.loads(content))]
        count.check(f"the default file, {name}, fits the schema", found)
    for name, content in (
        ("an unknown section", {"sanbox": {}}), ("an unknown key", {"sandbox": {"timeot": 5}}),
        ("a wrong type", {"sandbox": {"timeout": "soon"}}), ("an unknown key of a group", {"llm": {"x": {"modl": "y"}}}),
        ("a server without a name", {"mcp": {"stdio_servers": [{"command": "x"}]}}),
    ):
        count.check(f"the schema refuses {name}", [] if list(validator.iter_errors(content)) else ["it does not"])


def dot_env(count):
    with tempfile.TemporaryDirectory(dir=HOME) as directory:
        with open(os.path.join(directory, ".env"), "w") as file:
            file.write("# c\nexport SANDBOX_TIMEOUT=7 # c\nRUNTIME='lo''cal'\nGIT_USER_NAME=\"a \\\"b\\\"\"\n"
                       "MAX_ITERATIONS = 9\nGIT_USER_EMAIL=${GIT_USER_NAME}@${HOST:-example.com}\nCACHE_DIR=x#y\nDEBUG\n"
                       "DEFAULT_AGENT='in file'\n")
        variables = {"DEFAULT_AGENT": "outside"}
        theirs, mine = reference(directory, variables), ours(directory, variables)
        found = list(differences(theirs[1], mine[1], None)) if theirs[0] == mine[0] == "values" else [theirs, mine]
        if mine[0] == "values" and mine[1]["sandbox"]["timeout"] != 7:
            found.append("the file was not read")
        count.check("a .env file", [repr(entry) for entry in found])


def main():
    count = Count()
    # What the reference imports only when it loads, it imports once.
    load_openhands_config(config_file="none")
    for name, toml, variables, expected in CASES:
        count.check(name, problems_of(toml, variables, expected))
    our_default_file(count)
    dot_env(count)
    known = sum(len(case[3]) for case in CASES if isinstance(case[3], dict))
    os.chdir("/")
    shutil.rmtree(HOME, ignore_errors=True)
    print(f"        {known} listed differences")
    print(f"{count.passed} passed, {count.failed} failed, 0 skipped")
    return 1 if count.failed else 0


sys.exit(main())
