// Drives a gateway with the SDKs of E2B for JavaScript. See run. The argument is the directory with node_modules.
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

const resolve = createRequire(pathToFileURL(`${process.argv[2]}/x.js`)).resolve
// The same files as `import` takes them.
const load = async (name) => import(pathToFileURL(resolve(name)).href)
const {
  Sandbox,
  FileType,
  CommandExitError,
  NotFoundError,
  SandboxError,
  AuthenticationError,
  InvalidArgumentError,
  TimeoutError,
  FilesystemEventType,
} = (await load('e2b')).default ?? (await load('e2b'))
const { Sandbox: Interpreter } = (await load('@e2b/code-interpreter'))

const sleep = (time) => new Promise((done) => setTimeout(done, time))

async function check(name, work) {
  const began = performance.now()
  try {
    await work()
    console.log(`ok      JavaScript: ${name} (${((performance.now() - began) / 1000).toFixed(2)} s)`)
    return true
  } catch (error) {
    const text = `${error?.name}: ${error?.message}`.replaceAll('\n', ' ').slice(0, 600)
    console.log(`FAILED  JavaScript: ${name}: ${text}`)
    return false
  }
}

async function eventually(what, found) {
  for (let tries = 0; tries < 200; tries++) {
    const value = await found()
    if (value) return value
    await sleep(100)
  }
  throw new Error(`${what}, and that did not happen`)
}

let sandbox
const is_made = await check('a sandbox is made', async () => {
  sandbox = await Sandbox.create({ timeoutMs: 600_000, metadata: { team: 'js', 'odd name': 'a&b' }, envs: { COLOUR: 'blue' } })
})
if (is_made) {
  const run = (command, options) => sandbox.commands.run(command, options)
  await check('its information has what was said of it', async () => {
    const info = await sandbox.getInfo()
    assert.deepEqual(info.metadata, { team: 'js', 'odd name': 'a&b' })
    assert.equal(info.state, 'running')
  })
  await check('it is in the list by its metadata', async () => {
    const page = await Sandbox.list({ query: { metadata: { 'odd name': 'a&b' } } }).nextItems()
    assert.deepEqual(page.map((one) => one.sandboxId), [sandbox.sandboxId])
  })
  await check('its time is set anew', async () => {
    await sandbox.setTimeout(1_200_000)
    const left = (await sandbox.getInfo()).endAt - Date.now()
    assert.ok(left > 1_100_000 && left <= 1_200_000, `${left}`)
  })
  await check('it runs', async () => assert.equal(await sandbox.isRunning(), true))
  await check('it is connected to', async () => {
    const again = await Sandbox.connect(sandbox.sandboxId)
    assert.equal((await again.commands.run('echo $COLOUR')).stdout, 'blue\n')
  })
  await check('standard output and standard error are apart', async () => {
    const result = await run('echo out; echo err >&2')
    assert.deepEqual([result.stdout, result.stderr, result.exitCode], ['out\n', 'err\n', 0])
  })
  await check('an exit code is an error with what was written', async () => {
    await assert.rejects(run('echo half; exit 3'), (error) => error instanceof CommandExitError && error.exitCode === 3 && error.stdout === 'half\n')
  })
  await check('variables and directories are set', async () => {
    assert.equal((await run('echo $A; pwd', { envs: { A: '1' }, cwd: '/tmp' })).stdout, '1\n/tmp\n')
  })
  await check('output comes when it is written', async () => {
    const seen = []
    const began = Date.now()
    await run('echo one; sleep 1; echo two', { onStdout: () => seen.push(Date.now() - began) })
    assert.ok(seen[0] < 900 && seen.length >= 2, `${seen}`)
  })
  await check('a command whose time is over is ended', async () => {
    await assert.rejects(run('sleep 30', { timeoutMs: 1000 }), TimeoutError)
  })
  await check('a command in the background is killed', async () => {
    const handle = await run('sleep 60', { background: true, timeoutMs: 0 })
    assert.ok((await sandbox.commands.list()).some((one) => one.pid === handle.pid))
    assert.equal(await handle.kill(), true)
    await eventually('it is gone', async () => !(await sandbox.commands.list()).some((one) => one.pid === handle.pid))
    assert.equal(await sandbox.commands.kill(handle.pid), false)
  })
  await check('a command goes on without listeners, and is connected to again', async () => {
    const handle = await run('for i in $(seq 30); do echo $i; sleep 0.1; done', { background: true, timeoutMs: 0 })
    await handle.disconnect()
    const again = await sandbox.commands.connect(handle.pid)
    const result = await again.wait()
    assert.ok(result.stdout.endsWith('29\n30\n'), result.stdout)
  })
  await check('input is sent and closed', async () => {
    const handle = await run('cat; echo end', { background: true, stdin: true, timeoutMs: 0 })
    await sandbox.commands.sendStdin(handle.pid, 'typed ä\n')
    await sandbox.commands.closeStdin(handle.pid)
    assert.equal((await handle.wait()).stdout, 'typed ä\nend\n')
  })
  await check('many commands run at a time', async () => {
    const results = await Promise.all([...Array(10).keys()].map((number) => run(`sleep 0.2; echo ${number}`)))
    assert.deepEqual(results.map((one) => one.stdout), [...Array(10).keys()].map((number) => `${number}\n`))
  })
  await check('a file is written and read', async () => {
    const info = await sandbox.files.write('notes/a.txt', 'hello ä')
    assert.deepEqual([info.name, info.type], ['a.txt', FileType.FILE])
    assert.equal(await sandbox.files.read('notes/a.txt'), 'hello ä')
  })
  await check('bytes stay as they are', async () => {
    const content = new Uint8Array(100_000).map((_, at) => at % 256)
    await sandbox.files.write('binary', content.buffer)
    assert.deepEqual(await sandbox.files.read('binary', { format: 'bytes' }), content)
  })
  await check('blobs and streams are written and read', async () => {
    await sandbox.files.write('blob', new Blob(['blob of text']))
    assert.equal(await (await sandbox.files.read('blob', { format: 'blob' })).text(), 'blob of text')
    const stream = await sandbox.files.read('blob', { format: 'stream' })
    assert.equal(await new Response(stream).text(), 'blob of text')
  })
  await check('several files are written at once', async () => {
    const infos = await sandbox.files.write([{ path: 'many/1', data: 'one' }, { path: 'many/2', data: 'two' }])
    assert.deepEqual(infos.map((info) => info.name), ['1', '2'])
    assert.equal(await sandbox.files.read('many/2'), 'two')
  })
  await check('a directory is listed', async () => {
    assert.deepEqual((await sandbox.files.list('many')).map((entry) => entry.name).sort(), ['1', '2'])
  })
  await check('a directory is made once', async () => {
    assert.deepEqual([await sandbox.files.makeDir('made'), await sandbox.files.makeDir('made')], [true, false])
  })
  await check('an entry has size and kind', async () => {
    const entry = await sandbox.files.getInfo('many/1')
    assert.deepEqual([entry.size, entry.type, entry.name], [3, FileType.FILE, '1'])
  })
  await check('a file is moved and removed', async () => {
    await sandbox.files.rename('many/1', 'many/3')
    assert.equal(await sandbox.files.exists('many/1'), false)
    await sandbox.files.remove('many/3')
    assert.equal(await sandbox.files.exists('many/3'), false)
  })
  await check('a file that is missing is not found', async () => {
    await assert.rejects(sandbox.files.read('no-such'), NotFoundError)
  })
  await check('changes of a directory are told', async () => {
    const seen = []
    const handle = await sandbox.files.watchDir('made', (event) => seen.push(event))
    await sandbox.files.write('made/new', 'x')
    await eventually('it is told', () => seen.some((event) => event.name === 'new' && event.type === FilesystemEventType.CREATE))
    await handle.stop()
  })
  await check('a terminal is talked to', async () => {
    const output = []
    const handle = await sandbox.pty.create({ cols: 80, rows: 24, timeoutMs: 0, onData: (data) => output.push(Buffer.from(data)) })
    await sandbox.pty.resize(handle.pid, { cols: 100, rows: 30 })
    await sandbox.pty.sendInput(handle.pid, new TextEncoder().encode('echo $((40+2)); sleep 1; stty size; exit\n'))
    await handle.wait()
    const text = Buffer.concat(output).toString()
    assert.ok(text.includes('42') && text.includes('30 100'), text)
  })
  await check('it is paused, and goes on', async () => {
    await sandbox.pause()
    assert.equal((await sandbox.getInfo()).state, 'paused')
    assert.equal(await sandbox.isRunning(), false)
    sandbox = await Sandbox.connect(sandbox.sandboxId)
    assert.equal(await sandbox.files.read('notes/a.txt'), 'hello ä')
  })
  await check('nobody makes sandboxes without the key', async () => {
    await assert.rejects(Sandbox.create({ apiKey: 'a wrong key of some length' }), AuthenticationError)
  })
  await check('an unknown template is named', async () => {
    await assert.rejects(Sandbox.create('no-such'), (error) => error.message.includes('no-such'))
  })
  await check('a sandbox is ended, and then is none', async () => {
    assert.equal(await sandbox.kill(), true)
    assert.equal(await Sandbox.kill(sandbox.sandboxId), false)
    assert.equal(await sandbox.isRunning(), false)
  })
}

let interpreter
const has_interpreter = await check('a sandbox with a code interpreter is made', async () => {
  interpreter = await Interpreter.create({ timeoutMs: 600_000 })
  assert.equal((await interpreter.runCode('1 + 1')).text, '2')
})
if (has_interpreter) {
  await check('results have their forms, and output is apart', async () => {
    const lines = []
    const code = "import sys\nprint('out'); print('err', file=sys.stderr)\nfrom IPython.display import HTML\nHTML('<b>x</b>')"
    const execution = await interpreter.runCode(code, { onStdout: (message) => lines.push(message.line) })
    assert.equal(execution.results[0].html, '<b>x</b>')
    assert.deepEqual([execution.logs.stdout.join(''), execution.logs.stderr.join('')], ['out\n', 'err\n'])
    assert.equal(lines.join(''), 'out\n')
  })
  await check('an exception has its name', async () => {
    const execution = await interpreter.runCode('1 / 0')
    assert.deepEqual([execution.error.name, execution.error.value], ['ZeroDivisionError', 'division by zero'])
  })
  await check('contexts share nothing', async () => {
    const context = await interpreter.createCodeContext({ cwd: '/tmp' })
    await interpreter.runCode('z = 5', { context })
    assert.equal((await interpreter.runCode('z', { context })).text, '5')
    assert.equal((await interpreter.runCode('z')).error.name, 'NameError')
    assert.ok((await interpreter.listCodeContexts()).some((one) => one.id === context.id))
    await interpreter.removeCodeContext(context)
  })
  await check('it is ended', async () => assert.equal(await interpreter.kill(), true))
}
console.log('done')
