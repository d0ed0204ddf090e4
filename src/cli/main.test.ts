import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { cancelledError, KubelingError, realClock, seededRandom } from '../lib/index.ts';
import type { Command, CommandContext } from './command.ts';
import { type CommandEntry, commandTable, runCli } from './main.ts';

interface Outcome {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

async function run(
  argv: readonly string[],
  table?: readonly CommandEntry[],
  signal = new AbortController().signal,
): Promise<Outcome> {
  const out: string[] = [];
  const err: string[] = [];
  const code = await runCli(
    {
      argv,
      stdout: { write: (text) => out.push(text) },
      stderr: { write: (text) => err.push(text) },
      env: {},
      clock: realClock(),
      random: seededRandom(1),
      signal,
    },
    table,
  );
  return { code, out: out.join(''), err: err.join('') };
}

function tableOf(body: (context: CommandContext) => Promise<number>): readonly CommandEntry[] {
  const command: Command = { name: 'act', summary: 'acts', usage: 'usage: kubeling act', run: body };
  return [{ name: 'act', summary: 'acts', load: async () => command }];
}

describe('command line', () => {
  for (const argv of [[], ['--help'], ['-h'], ['help'], ['help', 'help']]) {
    it(`lists the commands for "kubeling ${argv.join(' ')}"`, async () => {
      const { code, out } = await run(argv);
      assert.equal(code, 0);
      for (const name of ['run', 'up', 'down', 'status', 'doctor', 'version']) {
        assert.match(out, new RegExp(`^ {2}${name}\\b`, 'm'));
      }
    });
  }

  it('suggests a similar command and exits with 1', async () => {
    const { code, err } = await run(['docter']);
    assert.equal(code, 1);
    assert.equal(err, 'kubeling: There is no command "docter": did you mean "doctor"?\n');
  });

  it('refers to the list of commands when no command is similar', async () => {
    assert.match((await run(['xyzzy'])).err, /--help lists the commands/);
    assert.match((await run(['help', 'xyzzy'])).err, /--help lists the commands/);
  });

  it('prints the usage of a command for help, --help and -h, but not after --', async () => {
    const table = tableOf(async () => 7);
    for (const argv of [
      ['help', 'act'],
      ['act', '--help'],
      ['act', 'x', '-h'],
    ]) {
      assert.deepEqual(await run(argv, table), { code: 0, out: 'usage: kubeling act\n', err: '' });
    }
    assert.equal((await run(['act', '--', '--help'], table)).code, 7);
  });

  it('passes the arguments after the command name to the command', async () => {
    const table = tableOf(async ({ argv }) => (argv.join() === '--a,b' ? 0 : 9));
    assert.equal((await run(['act', '--a', 'b'], table)).code, 0);
  });

  it('prints the message of an expected error without a stack', async () => {
    const table = tableOf(async () => {
      throw new KubelingError('CLI_USAGE', 'Cannot use these flags: --x');
    });
    assert.deepEqual(await run(['act'], table), {
      code: 1,
      out: '',
      err: 'kubeling act: Cannot use these flags: --x\n',
    });
  });

  it('reports any other error as a bug with its stack', async () => {
    const table = tableOf(async () => {
      throw new TypeError('oh');
    });
    const { code, err } = await run(['act'], table);
    assert.equal(code, 1);
    assert.match(err, /this is a bug in kubeling: TypeError: oh\n\s+at /);
  });

  it('exits with 130 when it was interrupted', async () => {
    const controller = new AbortController();
    const table = tableOf(async ({ signal }) => {
      controller.abort(cancelledError('SIGINT received'));
      signal.throwIfAborted();
      return 0;
    });
    assert.equal((await run(['act'], table, controller.signal)).code, 130);
  });
});

describe('command table', () => {
  for (const entry of commandTable) {
    it(`loads the command ${entry.name}, which has the same name as its entry`, async () => {
      const command = await entry.load();
      assert.equal(command.name, entry.name);
      assert.equal(command.summary, entry.summary);
      assert.match(command.usage, new RegExp(`^usage: kubeling ${entry.name}`));
    });
  }
});

describe('kubeling version', () => {
  it('prints the version in one line, or as JSON', async () => {
    assert.match(
      (await run(['version'])).out,
      /^kubeling \d+\.\d+\.\d+ \(Kubernetes v1\.\d+\.\d+, Node\.js /,
    );
    assert.equal((await run(['--version'])).out, (await run(['version'])).out);
    const facts = JSON.parse((await run(['version', '-o', 'json'])).out) as Record<string, string>;
    assert.equal(facts['node'], process.versions.node);
  });

  it('lists every unknown argument in one error', async () => {
    const { code, err } = await run(['version', '--outptu', 'extra', '-o', 'xml']);
    assert.equal(code, 1);
    for (const part of ['--outptu', 'did you mean --output', 'extra', 'xml'])
      assert.ok(err.includes(part), err);
  });
});
