import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { after, before, describe, it } from 'node:test';
import { ClusterNode } from './cluster-node.ts';
import { container, isReady, pod, podIs, podSpec } from './cluster-pods.ts';
import { ControlPlane } from './control-plane.ts';
import { patiently } from './patiently.ts';
import { clusterAssets, noCluster } from './programs.ts';

/** A script that writes to both streams at its start, echoes its input, and serves a given text. */
const talks = 'echo out; echo err >&2; nc -ll -p 8080 -e echo served & cat';

describe('a node to which the API server connects by WebSocket', {
  skip: noCluster(),
  timeout: 600_000,
}, () => {
  let plane: ControlPlane;
  let node: ClusterNode;

  before(async () => {
    plane = await ControlPlane.open(clusterAssets());
    node = await ClusterNode.open(plane);
    await node.start();
    await node.ready();
    await plane.apply(
      pod('talker', podSpec([container('main', { stdin: true, command: ['sh', '-c', talks] })])),
    );
    await podIs(plane, 'talker', 'Ready', isReady, () => node.out.slice(-6_000));
  });

  after(async () => {
    try {
      assert.deepEqual(await node?.leave(), []);
    } finally {
      await plane?.[Symbol.asyncDispose]();
    }
  });

  async function endOf(child: ChildProcess, input: string) {
    const { stdin, stdout, stderr } = child;
    assert.ok(stdin && stdout && stderr);
    stdin.end(input);
    const ended = new Promise<number | null>((resolve) => void child.once('close', resolve));
    const [out, complaint, code] = await Promise.all([text(stdout), text(stderr), ended]);
    return { out, complaint, code };
  }

  it('the node declares the feature ExtendWebSocketsToKubelet in its Node object', async () => {
    const { status } = await node.ready();
    assert.ok(status?.declaredFeatures?.includes('ExtendWebSocketsToKubelet'));
  });

  it('transfers both output streams, the input to its end, and the exit code of exec', async () => {
    const child = plane.spawnKubectl(
      ...['exec', '-i', 'talker', '--', 'sh', '-c', 'cat; echo wrong >&2; exit 7'],
    );
    const { out, complaint, code } = await endOf(child, 'all of it\n');
    assert.equal(out, 'all of it\n');
    assert.match(complaint, /^wrong\n.*exit code 7/s);
    assert.equal(code, 7);
  });

  it('transfers a large output without loss', async () => {
    const lines = await plane.kubectl('exec', 'talker', '--', 'seq', '1', '200000');
    assert.equal(lines.split('\n').length, 200_001);
    assert.ok(lines.endsWith('\n200000\n'));
  });

  it('attaches to a running container', async () => {
    const child = plane.spawnKubectl('attach', '-i', 'talker');
    let output = '';
    child.stdout?.setEncoding('utf8').on('data', (chunk) => {
      output += chunk;
    });
    try {
      child.stdin?.write('hello\n');
      await patiently('an answer', async () => (output.includes('hello\n') ? true : undefined));
    } finally {
      child.kill();
    }
  });

  it('forwards a port', async () => {
    const child = plane.spawnKubectl('port-forward', 'pod/talker', ':8080');
    let output = '';
    child.stdout?.setEncoding('utf8').on('data', (chunk) => {
      output += chunk;
    });
    try {
      const port = await patiently('a port', async () => /127\.0\.0\.1:(\d+)/.exec(output)?.[1]);
      const { connect } = await import('node:net');
      for (const time of [1, 2, 3]) {
        const response = await text(connect(Number(port), '127.0.0.1').setTimeout(20_000));
        assert.equal(response, 'served\n', `time ${time}`);
      }
    } finally {
      child.kill();
    }
  });
});
