import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { dataHead } from '../../src/protocols/spdy/index.ts';
import type { RequestedStreams } from '../../src/server/streaming/remote-command.ts';
import { type RuntimeCall, StreamingRig } from '../fakes/streaming-runtime.ts';
import { until } from './containerd-fixture.ts';

const switching = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n';
const success = JSON.stringify({ metadata: {}, status: 'Success' });

/** Opens a WebSocket to the server and collects what it receives on each channel. */
function listen(harness: StreamingRig, path: string) {
  const headers = { authorization: `Bearer ${StreamingRig.token}` };
  const url = `ws://127.0.0.1:${harness.port}${path}`;
  const socket = new WebSocket(url, { protocols: ['v5.channel.k8s.io'], headers } as object);
  socket.binaryType = 'arraybuffer';
  const output: Record<number, string> = {};
  socket.addEventListener('message', ({ data }) => {
    const bytes = Buffer.from(data);
    output[bytes[0] ?? -1] = (output[bytes[0] ?? -1] ?? '') + bytes.subarray(1).toString();
  });
  return { socket, said: output, closed: once(socket, 'close') };
}

function says({ socket }: RuntimeCall, stream: number, words: string, end: 'fin' | 'more' = 'fin'): void {
  socket.write(Buffer.concat([dataHead(stream, words.length, end), Buffer.from(words)]));
}

/**
 * Resolves with what a client receives when the runtime sends the text, reports success and closes.
 */
async function hears(path: string, word: string): Promise<Readonly<Record<number, string>>> {
  await using harness = await StreamingRig.open(switching);
  const { said, closed } = listen(harness, path);
  await until(() => harness.calls.length === 1 && said[1] !== undefined, 'the streams are open');
  // SPDY streams are numbered in the order in which they are opened: stream 1 is the error stream,
  // stream 3 the output.
  says(harness.only, 3, word);
  says(harness.only, 1, success);
  await closed;
  return said;
}

test('attach reports that the container exited before the attach and refers to the log', async () => {
  const path = '/attach/default/web/main?output=1';
  const { 1: output, 3: status = '' } = await hears(path, '');
  assert.equal(output, '');
  const { message, code } = JSON.parse(status);
  assert.deepEqual([code, message], [500, 'the container ended before it could be attached to']);
  const heard = await hears(path, 'word');
  assert.deepEqual([heard[1], JSON.parse(heard[3] ?? '').status], ['word', 'Success']);
  const silent = await hears('/exec/default/web/main?command=id&output=1', '');
  assert.deepEqual([silent[1], JSON.parse(silent[3] ?? '').status], ['', 'Success']);
});

const inputAndOutput = { stdin: true, stdout: true, stderr: false, tty: false };
const errorsAlone = { stdin: false, stdout: false, stderr: true, tty: false };

/**
 * A client attached to stdin, stdout and stderr of a process, and the two runtime calls that serve
 * it.
 */
async function attached(stdinOnce: boolean) {
  const requests: RequestedStreams[] = [];
  const harness = await StreamingRig.open(switching, {
    stdinOnce,
    onAttach: (streams) => requests.push(streams),
  });
  const client = listen(harness, '/attach/default/web/main?input=1&output=1&error=1');
  await until(() => harness.calls.length === 2 && client.said[1] !== undefined, 'the streams are open');
  assert.deepEqual(requests, [inputAndOutput, errorsAlone]);
  const [main, errors] = harness.calls;
  assert.ok(main && errors);
  return { rig: harness, client, main, errors };
}

test('delivers stdout after stderr has ended', async () => {
  const { rig, client, main, errors } = await attached(false);
  await using _ = rig;
  says(errors, 3, 'oh');
  says(errors, 1, success);
  await until(() => client.said[2] === 'oh', 'the errors arrive');
  // The SPDY streams are: 1 the error stream, 3 the input, 5 the output.
  says(main, 5, 'last words');
  says(main, 1, success);
  await client.closed;
  assert.deepEqual(client.said, { 1: 'last words', 2: 'oh', 3: success });
});

test('delivers stderr after stdout has ended', async () => {
  const { rig, client, main, errors } = await attached(false);
  await using _ = rig;
  says(main, 5, 'out');
  says(main, 1, success);
  await until(() => client.said[3] === success, 'the end of the output arrives');
  says(errors, 3, 'oh');
  await client.closed;
  assert.deepEqual(client.said, { 1: 'out', 2: 'oh', 3: success });
});

test('detaches from a process when its input ends, unless the container has stdinOnce', async () => {
  for (const stdinOnce of [false, true]) {
    const { rig, client, main, errors } = await attached(stdinOnce);
    await using _ = rig;
    client.socket.send(Buffer.from([0, ...Buffer.from('words')]));
    client.socket.send(Buffer.of(255, 0));
    await until(() => String(main.received).includes('words'), 'the input arrives');
    says(main, 5, 'out');
    says(main, 1, success);
    if (stdinOnce) says(errors, 3, 'oh');
    await client.closed;
    assert.equal(client.said[2], stdinOnce ? 'oh' : undefined);
  }
});
