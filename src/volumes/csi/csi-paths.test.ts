import assert from 'node:assert/strict';
import { test } from 'node:test';
import { podUid } from '../../pods/index.ts';
import { CsiPaths } from './csi-paths.ts';

const places = new CsiPaths('/root', '/root/pods');
const uid = podUid('0123');

for (const name of ['..', '../../etc', 'a/b', '/etc', '.hidden', ''])
  test(`rejects ${JSON.stringify(name)} as the directory of a volume or a driver`, () => {
    const refused = { code: 'VOLUME_UNUSABLE' };
    assert.throws(() => places.volume(uid, name), refused);
    assert.throws(() => places.device(name), refused);
    assert.throws(() => places.stagedDevice(name), refused);
    assert.throws(() => places.publishedDevices(name), refused);
    assert.throws(() => places.stagedVolume(name, 'handle'), refused);
  });

test('never uses the volume handle of a driver as a path', () => {
  const { directory } = places.stagedVolume('csi.example.com', '../../../etc');
  assert.match(directory, /^\/root\/plugins\/kubernetes\.io\/csi\/csi\.example\.com\/[0-9a-f]{64}$/);
});
