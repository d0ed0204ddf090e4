import assert from 'node:assert/strict';
import { test } from 'node:test';
import { podUid } from '../../pods/index.ts';
import { CsiPaths } from './csi-paths.ts';

const paths = new CsiPaths('/root', '/root/pods');
const uid = podUid('0123');

for (const name of ['..', '../../etc', 'a/b', '/etc', '.hidden', ''])
  test(`rejects ${JSON.stringify(name)} as the directory of a volume or a driver`, () => {
    const refused = { code: 'VOLUME_UNUSABLE' };
    assert.throws(() => paths.volume(uid, name), refused);
    assert.throws(() => paths.device(name), refused);
    assert.throws(() => paths.stagedDevice(name), refused);
    assert.throws(() => paths.publishedDevices(name), refused);
    assert.throws(() => paths.stagedVolume(name, 'handle'), refused);
  });

test('does not use the volume handle of a driver in a path', () => {
  const { directory } = paths.stagedVolume('csi.example.com', '../../../etc');
  assert.match(directory, /^\/root\/plugins\/kubernetes\.io\/csi\/csi\.example\.com\/[0-9a-f]{64}$/);
});
