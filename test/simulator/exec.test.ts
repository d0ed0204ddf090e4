import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GrpcError } from '../../src/protocols/grpc/index.ts';
import { SimulatedNode } from '../fakes/simulated-node.ts';

const says = (code: string, message: RegExp) => (error: unknown) =>
  error instanceof GrpcError && error.grpcCode === code && message.test(error.message);

async function exec(node: SimulatedNode, containerId: string, cmd: readonly string[], timeout = 0n) {
  const response = await node.done(node.cri.execSync({ containerId, cmd, timeout }, node.options));
  return {
    out: Buffer.from(response.stdout).toString(),
    err: Buffer.from(response.stderr).toString(),
    code: response.exitCode,
  };
}

test('ExecSync returns the output and the exit code of a command', async () => {
  using node = new SimulatedNode();
  const { containerId } = await node.pod();
  assert.deepEqual(await exec(node, containerId, ['sh', '-c', 'echo o; echo e >&2; exit 4']), {
    out: 'o\n',
    err: 'e\n',
    code: 4,
  });
});

test('a command executed in a container has the files and the environment of the container', async () => {
  using node = new SimulatedNode();
  const podSandboxId = await node.sandbox();
  const containerId = await node.create(podSandboxId, {
    script: 'echo yes > /tmp/healthy; sleep 1000',
    envs: [{ key: 'A', value: Buffer.from('b') }],
  });
  await node.start(containerId);
  assert.equal((await exec(node, containerId, ['cat', '/tmp/healthy'])).out, 'yes\n');
  assert.equal((await exec(node, containerId, ['sh', '-c', 'echo $A'])).out, 'b\n');
  await exec(node, containerId, ['rm', '/tmp/healthy']);
  assert.equal((await exec(node, containerId, ['cat', '/tmp/healthy'])).code, 1);
});

test('a container script handles the commands it defines, and the simulated shell all others', async () => {
  using node = new SimulatedNode({
    script: () => ({
      exec: ([name]) => {
        if (name === 'check') return { stdout: 'ok', exitCode: 3, afterMs: 2_000 };
        if (name === 'stuck') return { hangs: true };
        return name === 'broken' ? { startError: 'exec: "broken": permission denied' } : undefined;
      },
    }),
  });
  const { containerId } = await node.pod();
  const beforeMs = node.clock.monotonicMs();
  assert.deepEqual(await exec(node, containerId, ['check']), { out: 'ok', err: '', code: 3 });
  assert.ok(node.clock.monotonicMs() - beforeMs >= 2_000);
  assert.equal((await exec(node, containerId, ['echo', 'hi'])).out, 'hi\n');
  await assert.rejects(exec(node, containerId, ['broken']), says('UNKNOWN', /permission denied: unknown$/));
  await assert.rejects(
    exec(node, containerId, ['stuck'], 5n),
    says('DEADLINE_EXCEEDED', /timeout 5s exceeded/),
  );
});

test('a command that exceeds its timeout is killed', async () => {
  using node = new SimulatedNode();
  const { containerId } = await node.pod();
  const beforeMs = node.clock.monotonicMs();
  await assert.rejects(
    exec(node, containerId, ['sleep', '1000'], 90n),
    says(
      'DEADLINE_EXCEEDED',
      /^failed to exec in container: timeout 1m30s exceeded: context deadline exceeded$/,
    ),
  );
  assert.ok(node.clock.monotonicMs() - beforeMs < 91_000);
});

test('an executed command is killed together with its container', async () => {
  using node = new SimulatedNode();
  const { containerId } = await node.pod('sleep 5');
  assert.equal((await exec(node, containerId, ['sleep', '1000'])).code, 137);
});

test('an executed command is killed when its caller aborts', async () => {
  using node = new SimulatedNode();
  const { containerId } = await node.pod('sleep 100000');
  const controller = new AbortController();
  const cmd = ['sh', '-c', 'sleep 10; touch /tmp/done'];
  const call = node.cri.execSync({ containerId, cmd }, { signal: controller.signal });
  const ended = assert.rejects(call, says('CANCELLED', /cancelled/));
  await node.clock.advance(5_000);
  controller.abort(new Error('enough'));
  await ended;
  await node.clock.advance(20_000);
  assert.equal((await exec(node, containerId, ['cat', '/tmp/done'])).code, 1);
});

test('commands can be executed only in a running container', async () => {
  using node = new SimulatedNode();
  const created = await node.create(await node.sandbox());
  await assert.rejects(
    exec(node, created, ['true']),
    says('UNKNOWN', /container is in CONTAINER_CREATED state/),
  );
  await assert.rejects(
    exec(node, 'nope', ['true']),
    says('NOT_FOUND', /failed to find container "nope" in store/),
  );
});

test('the error for a missing command names the command', async () => {
  using node = new SimulatedNode();
  const { containerId } = await node.pod();
  await assert.rejects(
    exec(node, containerId, ['nope']),
    says('UNKNOWN', /"nope": executable file not found/),
  );
  await assert.rejects(
    exec(node, containerId, []),
    says('UNKNOWN', /exec failed: args must not be empty: unknown$/),
  );
});

test('a response larger than the maximum message is rejected', async () => {
  using node = new SimulatedNode();
  const { containerId } = await node.pod();
  const head = (bytes: number) => exec(node, containerId, ['head', '-c', String(bytes), '/dev/zero']);
  assert.equal((await head(15_000_000)).out.length, 15_000_000);
  await assert.rejects(
    head(20_000_000),
    says('RESOURCE_EXHAUSTED', /larger than max \(16777221 vs\. 16777216\)/),
  );
});

test('a streaming request gets a URL if it requests at least one stream', async () => {
  using node = new SimulatedNode({ streamingUrl: 'http://127.0.0.1:1234' });
  const { podSandboxId, containerId } = await node.pod();
  const exec = await node.done(node.cri.exec({ containerId, cmd: ['sh'], stdout: true }, node.options));
  assert.match(exec.url, /^http:\/\/127\.0\.0\.1:1234\/exec\/\w{8}$/);
  await node.done(node.cri.attach({ containerId, stdout: true }, node.options));
  await node.done(node.cri.portForward({ podSandboxId, port: [80] }, node.options));
  await assert.rejects(
    node.done(node.cri.exec({ containerId, cmd: ['sh'] }, node.options)),
    says('INVALID_ARGUMENT', /one of stdin, stdout, or stderr must be set/),
  );
  const both = { containerId, cmd: ['sh'], tty: true, stderr: true };
  await assert.rejects(
    node.done(node.cri.exec(both, node.options)),
    says('INVALID_ARGUMENT', /tty and stderr cannot both be true/),
  );
});
