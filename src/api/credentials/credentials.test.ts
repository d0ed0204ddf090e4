import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { type Command, collectLogs, KubelingError } from '../../lib/index.ts';
import { parseKubeconfig } from '../kubeconfig/kubeconfig.ts';
import { Credentials } from './credentials.ts';

const never = new AbortController().signal;

/**
 * Environment of the credential tests: in-memory files, a virtual clock, and exec plugins with
 * given outputs.
 */
class World {
  readonly clock = new VirtualClock({ startMs: Date.UTC(2026, 0, 1) });
  readonly logs = collectLogs(this.clock);
  readonly files = new Map<string, string>();
  readonly reads: string[] = [];
  readonly runs: Command[] = [];
  answer: () => string = () => '';
  readonly credentials: Credentials;

  constructor(user: Readonly<Record<string, unknown>>) {
    this.write(user);
    const readText = async (path: string) => {
      this.reads.push(path);
      const text = this.files.get(path);
      if (text === undefined) throw new Error(`ENOENT: ${path}`);
      return text;
    };
    const run = async (command: Command) => {
      this.runs.push(command);
      return {
        end: { kind: 'exited', code: 0 } as const,
        stdout: this.answer(),
        stderr: '',
        droppedBytes: 0,
      };
    };
    const load = async () => parseKubeconfig({ file: '/etc/conf', text: await readText('/etc/conf') });
    this.credentials = new Credentials(load, {
      clock: this.clock,
      logger: this.logs.logger,
      files: { readText },
      exec: { run, environment: { HOME: '/root' } },
    });
  }

  write(user: Readonly<Record<string, unknown>>, server = 'https://a'): void {
    const config = {
      'current-context': 'x',
      contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
      clusters: [{ name: 'c', cluster: { server } }],
      users: [{ name: 'u', user }],
    };
    this.files.set('/etc/conf', JSON.stringify(config));
  }

  async authorization(): Promise<string | undefined> {
    return (await this.credentials.current(never)).authorization;
  }

  readsOf(path: string): number {
    return this.reads.filter((read) => read === path).length;
  }
}

test('does not read a credential file again while its content is fresh, and returns the same credentials object', async () => {
  const environment = new World({ token: 'abc' });
  const first = await environment.credentials.current(never);
  await environment.clock.advance(299_000);
  assert.equal(await environment.credentials.current(never), first);
  assert.deepEqual(environment.reads, ['/etc/conf']);
  await environment.clock.advance(1_000);
  assert.equal(await environment.credentials.current(never), first);
  assert.equal(environment.reads.length, 2);
});

test('reads a token file every minute, and uses the old token while the file cannot be read', async () => {
  const environment = new World({ tokenFile: 'token' });
  environment.files.set('/etc/token', ' one\n');
  assert.equal(await environment.authorization(), 'Bearer one');
  environment.files.set('/etc/token', 'two');
  await environment.clock.advance(59_000);
  assert.equal(await environment.authorization(), 'Bearer one');
  await environment.clock.advance(1_000);
  assert.equal(await environment.authorization(), 'Bearer two');
  environment.files.delete('/etc/token');
  await environment.clock.advance(60_000);
  assert.equal(await environment.authorization(), 'Bearer two');
  assert.equal(await environment.authorization(), 'Bearer two');
  assert.equal(environment.readsOf('/etc/token'), 3);
  assert(environment.logs.records.toArray().some(({ message }) => message.includes('/etc/token')));
  environment.files.set('/etc/token', 'three');
  await environment.clock.advance(10_000);
  assert.equal(await environment.authorization(), 'Bearer three');
});

test('fails with the name of a missing token file, unless the kubeconfig has a token too', async () => {
  const alone = new World({ tokenFile: '/run/token' });
  await assert.rejects(alone.authorization(), (error) => {
    assert(error instanceof KubelingError);
    assert.match(error.message, /\/run\/token.*ENOENT/);
    return error.code === 'API_UNAVAILABLE';
  });
  alone.files.set('/run/token', 'a b');
  await assert.rejects(alone.authorization(), /one line of printable text/);
  alone.files.set('/run/token', 'late');
  assert.equal(await alone.authorization(), 'Bearer late');
  const both = new World({ tokenFile: '/run/token', token: 'written' });
  assert.equal(await both.authorization(), 'Bearer written');
  both.files.set('/run/token', 'read');
  assert.equal(await both.authorization(), 'Bearer read');
});

test('reloads credentials at the next request after an invalidation or a rejection by the server', async () => {
  const environment = new World({ tokenFile: 'token' });
  environment.files.set('/etc/token', 'one');
  const first = await environment.credentials.current(never);
  environment.files.set('/etc/token', 'two');
  environment.credentials.refused(first);
  assert.equal(await environment.authorization(), 'Bearer two');
  environment.files.set('/etc/token', 'three');
  environment.credentials.refused(first);
  assert.equal(await environment.authorization(), 'Bearer two', 'the rejected token is no longer in use');
  environment.credentials.expire();
  assert.equal(await environment.authorization(), 'Bearer three');
});

test('applies a changed kubeconfig and ignores an invalid one', async () => {
  const environment = new World({ token: 'one' });
  assert.equal(await environment.authorization(), 'Bearer one');
  environment.write({ username: 'me', password: 'secret' }, 'https://b');
  environment.credentials.expire();
  const changed = await environment.credentials.current(never);
  assert.equal(changed.context.cluster.server.host, 'b');
  assert.equal(changed.authorization, `Basic ${Buffer.from('me:secret').toString('base64')}`);
  environment.files.set('/etc/conf', '{');
  environment.credentials.expire();
  assert.equal(await environment.credentials.current(never), changed);
});

function execAnswer(status: unknown): string {
  return JSON.stringify({ apiVersion: 'client.authentication.k8s.io/v1', kind: 'ExecCredential', status });
}

const exec = {
  apiVersion: 'client.authentication.k8s.io/v1',
  command: 'login',
  args: ['--now'],
  env: [{ name: 'A', value: 'b' }],
  interactiveMode: 'Never',
};

test('runs an exec plugin again when its token expires and not before', async () => {
  const environment = new World({ exec });
  environment.answer = () =>
    execAnswer({ token: `t${environment.runs.length}`, expirationTimestamp: '2026-01-01T00:10:00Z' });
  assert.equal(await environment.authorization(), 'Bearer t1');
  await environment.clock.advance(599_000);
  assert.equal(await environment.authorization(), 'Bearer t1');
  environment.answer = () => execAnswer({ token: `t${environment.runs.length}` });
  await environment.clock.advance(1_000);
  assert.equal(await environment.authorization(), 'Bearer t2');
  await environment.clock.advance(86_400_000);
  assert.equal(await environment.authorization(), 'Bearer t2');
  const { file, args, env } = environment.runs[0] ?? assert.fail();
  assert.deepEqual([file, args], ['login', ['--now']]);
  assert.deepEqual(
    { ...env, KUBERNETES_EXEC_INFO: JSON.parse(env?.['KUBERNETES_EXEC_INFO'] ?? '') },
    {
      HOME: '/root',
      A: 'b',
      KUBERNETES_EXEC_INFO: {
        apiVersion: 'client.authentication.k8s.io/v1',
        kind: 'ExecCredential',
        spec: { interactive: false },
      },
    },
  );
});

test('does not run the plugin for every request that the server rejects', async () => {
  const environment = new World({ exec });
  environment.answer = () => execAnswer({ token: `t${environment.runs.length}` });
  for (let second = 0; second < 30; second++) {
    environment.credentials.refused(await environment.credentials.current(never));
    await environment.clock.advance(1_000);
  }
  assert.equal(environment.runs.length, 3);
});

test('shares one plugin run between concurrent callers, and continues it when one caller aborts', async () => {
  const environment = new World({ exec });
  environment.answer = () => execAnswer({ token: 'shared' });
  const given = new AbortController();
  const first = environment.credentials.current(given.signal);
  const second = environment.credentials.current(never);
  given.abort(new KubelingError('CANCELLED', 'enough'));
  await assert.rejects(first, /enough/);
  assert.equal((await second).authorization, 'Bearer shared');
  assert.equal(environment.runs.length, 1);
});

test('reports unusable plugin output without quoting it', async () => {
  const bad: [string, RegExp][] = [
    ['secret-words', /must be a JSON object/],
    [execAnswer(undefined), /must have a status/],
    [execAnswer({}), /must have a token, or a certificate/],
    [execAnswer({ token: 'a b' }), /without spaces/],
    [execAnswer({ token: 5 }), /must have text as status.token/],
    [execAnswer({ clientKeyData: 'k' }), /both or neither/],
    [execAnswer({ token: 'a', expirationTimestamp: 'tomorrow' }), /must have a time/],
    [execAnswer({ token: 'a' }).replace('/v1', '/v1beta1'), /must be an ExecCredential of client/],
  ];
  for (const [response, told] of bad) {
    const environment = new World({ exec });
    environment.answer = () => response;
    await assert.rejects(environment.authorization(), (error) => {
      assert(error instanceof KubelingError);
      assert.match(error.message, told);
      assert.match(error.message, /exec plugin login/);
      assert(!error.message.includes('secret-words'));
      return error.code === 'API_UNAVAILABLE';
    });
  }
});

test('does not run the exec plugin of a user that also has a token', async () => {
  const environment = new World({ exec, token: 'mine' });
  assert.equal(await environment.authorization(), 'Bearer mine');
  assert.equal(environment.runs.length, 0);
});
