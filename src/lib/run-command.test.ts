import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { VirtualClock } from '../../test/fakes/virtual-clock.ts';
import { realClock } from './clock.ts';
import { KubelingError } from './errors.ts';
import { type Command, runChecked, runCommand } from './run-command.ts';

const clock = realClock();
const never = new AbortController().signal;

function command(file: string, args: readonly string[], more: Partial<Command> = {}): Command {
  return { file, args, clock, deadlineMs: 60_000, ...more };
}

function script(text: string, more: Partial<Command> = {}): Command {
  return command(process.execPath, ['-e', text], more);
}

/** A file to which a script writes its PIDs atomically. */
async function pidFile() {
  const dir = await mkdtemp(join(tmpdir(), 'run-command-'));
  const file = join(dir, 'pids');
  return {
    write: (expression: string) =>
      `{ const fs = require("node:fs"); fs.writeFileSync(${JSON.stringify(`${file}.new`)}, String(${expression}));
         fs.renameSync(${JSON.stringify(`${file}.new`)}, ${JSON.stringify(file)}) }`,
    async read() {
      await until(() => existsSync(file));
      return (await readFile(file, 'utf8')).split(' ').map(Number);
    },
    [Symbol.asyncDispose]: () => rm(dir, { recursive: true }),
  };
}

async function until(condition: () => boolean): Promise<void> {
  const limit = AbortSignal.timeout(60_000);
  while (!condition()) await clock.sleep(10, limit);
}

function isGone(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return false;
  } catch {
    return true;
  }
}

describe('runCommand', () => {
  it('returns the exit code, stdout and stderr', async () => {
    const result = await runCommand(
      script('console.log("out"); console.error("err"); process.exit(3)'),
      never,
    );
    assert.deepEqual(result, {
      end: { kind: 'exited', code: 3 },
      stdout: 'out\n',
      stderr: 'err\n',
      droppedBytes: 0,
    });
  });

  it('passes arguments without a shell', async () => {
    const args = ['-e', 'console.log(JSON.stringify(process.argv.slice(1)))', '--', '$HOME', 'a b', '; ls'];
    const result = await runCommand(command(process.execPath, args), never);
    assert.deepEqual(JSON.parse(result.stdout), ['$HOME', 'a b', '; ls']);
  });

  it('writes the input and sets only the given environment', async () => {
    const text =
      'process.stdin.on("data", (d) => process.stdout.write(d + (process.env.A ?? "") + (process.env.HOME ?? "none")))';
    const result = await runCommand(script(text, { input: 'in:', env: { A: 'a:' } }), never);
    assert.equal(result.stdout, 'in:a:none');
  });

  it('accepts a command that does not read its input', async () => {
    const result = await runCommand(script('', { input: Buffer.alloc(1_000_000) }), never);
    assert.deepEqual(result.end, { kind: 'exited', code: 0 });
  });

  it('returns the signal that killed a command', async () => {
    const result = await runCommand(script('process.kill(process.pid, "SIGKILL")'), never);
    assert.deepEqual(result.end, { kind: 'killed', by: 'SIGKILL' });
  });

  it('keeps output up to the limit and counts the rest', async () => {
    const result = await runCommand(
      script('process.stdout.write("x".repeat(100000))', { maxOutputBytes: 10 }),
      never,
    );
    assert.equal(result.stdout, 'xxxxxxxxxx');
    assert.equal(result.droppedBytes, 99_990);
  });

  it('reports a missing program', async () => {
    await assert.rejects(runCommand(command('/no/such/program', []), never), (error) => {
      assert(error instanceof KubelingError);
      assert.equal(error.code, 'COMMAND_NOT_FOUND');
      assert.match(error.message, /Cannot run \/no\/such\/program as there is no such program/);
      return true;
    });
  });

  it('reports why a program cannot be run', async () => {
    await assert.rejects(runCommand(command('/etc/passwd', []), never), {
      code: 'COMMAND_FAILED',
      message: /EACCES/,
    });
  });

  it('kills a command and its child processes at the deadline', async () => {
    await using pids = await pidFile();
    // The script ignores SIGTERM, and its child keeps the pipes open.
    const text = `process.on("SIGTERM", () => {});
      const child = require("node:child_process").spawn("sleep", ["600"], { stdio: "inherit" });
      ${pids.write('process.pid + " " + child.pid')}; setInterval(() => {}, 1000)`;
    const time = new VirtualClock();
    const refused = assert.rejects(runCommand(script(text, { clock: time, deadlineMs: 1500 }), never), {
      code: 'DEADLINE_EXCEEDED',
      message: /within 1500 ms/,
    });
    const [parent = 0, child = 0] = await pids.read();
    // The command ends after the deadline plus the grace period that follows SIGTERM.
    await time.advance(1500 + 1000);
    await refused;
    await until(() => isGone(parent) && isGone(child));
  });

  it('leaves no process running when a command is aborted', async () => {
    await using pids = await pidFile();
    const controller = new AbortController();
    const text = `${pids.write('process.pid')}; setInterval(() => {}, 1000)`;
    const refused = assert.rejects(runCommand(script(text), controller.signal), /enough/);
    const [pid = 0] = await pids.read();
    controller.abort(new Error('enough'));
    await refused;
    assert(isGone(pid));
  });

  it('does not start the command when the signal is already aborted', async () => {
    await assert.rejects(
      runCommand(command('/no/such/program', []), AbortSignal.abort(new Error('no'))),
      /no/,
    );
  });

  it('does not wait for a daemon that keeps the pipes of an exited command open', async () => {
    const options = '{ stdio: "inherit", detached: true }';
    const text = `const daemon = require("node:child_process").spawn("sleep", ["600"], ${options});
      daemon.unref(); console.log(daemon.pid)`;
    const { stdout } = await runCommand(script(text), never);
    assert(!isGone(Number(stdout)));
    process.kill(Number(stdout), 'SIGKILL');
  });
});

describe('runChecked', () => {
  it("throws an error with the command's output for a failed command", async () => {
    await assert.rejects(runChecked(script('console.error("it broke"); process.exit(1)'), never), {
      code: 'COMMAND_FAILED',
      message: /exit code 1: it broke$/,
    });
  });

  it('rejects truncated output', async () => {
    await assert.rejects(runChecked(script('console.log("12345")', { maxOutputBytes: 3 }), never), {
      code: 'COMMAND_FAILED',
      message: /at most 3 bytes: it was 3 bytes longer/,
    });
  });

  it('returns the result of a command that exits with code 0', async () => {
    assert.equal((await runChecked(script('console.log("fine")'), never)).stdout, 'fine\n');
  });
});
