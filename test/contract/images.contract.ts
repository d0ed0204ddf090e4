import assert from 'node:assert/strict';
import { test } from 'node:test';
import { kindOf } from '../../src/lib/index.ts';
import { signal } from './pods.ts';
import type { Part } from './suite.ts';

export const imageContract: Part = (get) => {
  const find = async (image: string) => (await get().cri.imageStatus({ image: { image } }, signal)).image;

  test('an image is found by its name and by its ID', async () => {
    const { image } = get();
    const byName = await find(image);
    assert.ok(byName !== undefined);
    assert.match(byName.id, /^sha256:[0-9a-f]{64}$/);
    assert.ok(byName.size > 0n);
    assert.ok(byName.repoTags.includes(image));
    assert.deepEqual(await find(byName.id), byName);
  });

  test('the image list contains each image once', async () => {
    const backend = get();
    const { images } = await backend.cri.listImages({}, signal);
    const ids = images.map((image) => image.id);
    assert.equal(new Set(ids).size, ids.length);
    assert.ok(images.some((image) => image.repoTags.includes(backend.image)));
  });

  test('a missing image has no status and can be removed without an error', async () => {
    assert.equal(await find('localhost/no/such:image'), undefined);
    await get().cri.removeImage({ image: { image: 'localhost/no/such:image' } }, signal);
  });

  test('the runtime reports no content being written when no image is being pulled', async () => {
    assert.deepEqual(await get().cri.containerdIngests(signal), []);
  });

  test('a pull from an unreachable registry fails with the reason', async () => {
    const pull = get().cri.pullImage({ image: { image: '127.0.0.1:1/nobody/home:1' } }, signal);
    await assert.rejects(
      pull,
      (error) => ['Failed', 'Unavailable'].includes(kindOf(error)) && /127\.0\.0\.1:1/.test(String(error)),
    );
  });

  test('an invalid image name is rejected', async () => {
    await assert.rejects(
      get().cri.pullImage({ image: { image: 'UPPER:case:twice' } }, signal),
      /invalid reference format|could not parse/,
    );
  });

  test('the file system of the images is reported with its usage', async () => {
    const { imageFilesystems } = await get().cri.imageFsInfo({}, signal);
    const [first] = imageFilesystems;
    assert.notEqual(first?.fsId?.mountpoint ?? '', '');
    assert.ok((first?.timestamp ?? 0n) > 0n);
  });
};
