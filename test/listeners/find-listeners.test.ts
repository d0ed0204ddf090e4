import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type FoundListener, type NodeDirectories, sortListeners } from './find-listeners.ts';
import { listenerTable } from './table.ts';

const places: NodeDirectories = { way: 'up', dataDir: '/data', rootDir: '/data/kubelet' };
const plain = async () => false;

function tcp(process: string, port: number, host = '127.0.0.1', protocol = 'tcp'): FoundListener {
  return { process, at: { protocol, host, port } };
}

async function unknown(...listeners: readonly FoundListener[]): Promise<readonly FoundListener[]> {
  return (await sortListeners(listeners, listenerTable, places, plain)).unknown;
}

describe('listener table', () => {
  it('assigns each listener of a node to its row of the listener table', async () => {
    const listeners = [
      tcp('containerd', 40_001),
      tcp('node-MainThread', 40_002),
      tcp('node-MainThread', 10_248),
      { process: 'containerd', path: '/data/containerd/containerd.sock' },
      { process: 'containerd-shim', path: '/run/containerd/s/aa' },
      { process: 'containerd-shim', path: '/run/containerd/s/bb' },
    ];
    const sorted = await sortListeners(listeners, listenerTable, places, plain);
    assert.deepEqual(sorted.unknown, []);
    assert.deepEqual(
      [...sorted.found].map(([{ name }, each]) => `${name} ${each.length}`),
      [
        'streaming server of containerd 1',
        'commands of kubeling 1',
        'health 1',
        'CRI of containerd 1',
        'shim of a pod 2',
      ],
    );
    assert.ok(sorted.missing.some(({ name }) => name === 'embedded API'));
    assert.ok(!sorted.missing.some(({ ways }) => !ways.includes('up')));
  });

  it('reports a listener on another address or of another process, an abstract socket and a duplicate as unknown', async () => {
    for (const listener of [
      tcp('containerd', 40_001, '0.0.0.0'),
      tcp('containerd', 40_001, '127.0.0.1', 'udp'),
      tcp('containerd-shim', 40_001),
      { process: 'containerd', path: '@/data/containerd/containerd.sock' },
      { process: 'containerd-shim', path: '/run/containerd/s/aa/bb' },
      { process: 'node-MainThread', path: '/data/kubelet/pod-resources/kubelet.sock.old' },
    ])
      assert.deepEqual(await unknown(listener), [listener]);
    assert.equal((await unknown(tcp('containerd', 1), tcp('containerd', 2))).length, 1);
  });
});
