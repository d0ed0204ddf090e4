import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { containerdLayout, networkName } from './layout.ts';

describe('containerdLayout', () => {
  it('places all paths below one directory', () => {
    const layout = containerdLayout('/var/lib/kubeling');
    const { dataDir: _, network: __, cgroup: ___, ...paths } = layout;
    for (const path of Object.values(paths)) assert.match(path, /^\/var\/lib\/kubeling\/containerd(\/|$)/);
  });

  it('derives the network name from the directory, short enough for an interface', () => {
    assert.match(networkName('/var/lib/kubeling'), /^klg[0-9a-f]{8}$/);
    assert.equal(networkName('/a'), networkName('/a'));
    assert.notEqual(networkName('/a'), networkName('/b'));
  });

  it('accepts the longest valid socket path and rejects longer ones', () => {
    const rest = '/containerd/containerd.sock'.length;
    const longest = `/${'x'.repeat(107 - rest - 1)}`;
    assert.equal(containerdLayout(longest).socket.length, 107);
    assert.throws(() => containerdLayout(`${longest}x`), {
      code: 'CONTAINERD_SOCKET_PATH',
      message:
        /at most 107 bytes: \/x+\/containerd\/containerd\.sock has 108\. Use a data directory of at most 80 bytes, such as \/var\/lib\/kubeling/,
    });
  });

  it('counts the bytes of a socket path, not its characters', () => {
    assert.throws(() => containerdLayout(`/${'ä'.repeat(60)}`), { code: 'CONTAINERD_SOCKET_PATH' });
  });
});
