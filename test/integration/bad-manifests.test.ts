import assert from 'node:assert/strict';
import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { busyboxImageName } from '../../src/containerd/index.ts';
import { badManifests, usedAllTheSame } from '../fakes/bad-manifests.ts';
import { eventually, KubelingNode } from '../kubeling-node.ts';

const manifests = badManifests(busyboxImageName);
const wrong = manifests.filter(({ file }) => file !== 'first.yaml');

describe('manifests with mistakes on a private node', { timeout: 180_000 }, () => {
  let node: KubelingNode;

  before(async () => {
    node = await KubelingNode.open();
  });

  after(async () => {
    assert.deepEqual(await node.leave(), []);
  });

  const pathOf = (file: string) => join(node.dataDir, 'manifests', file);
  const toldIn = (text: string, file: string) =>
    text
      .split('\n')
      .filter((line) => line.includes(`${pathOf(file)}:`) && !line.includes('manifest problem'));

  it("reports each mistake once in the log and in the node's history, and keeps other pods running", async () => {
    const [{ content } = { content: '' }] = manifests.filter(({ file }) => file === 'first.yaml');
    await node.put('good.yaml', String(content).replace('twice', 'good'));
    await node.running('good');
    const ids = (await node.containersOf('good')).map(({ id }) => id);
    for (const each of manifests) {
      await writeFile(join(node.dataDir, 'new'), each.content);
      await rename(join(node.dataDir, 'new'), pathOf(each.file));
    }
    const story = await eventually('all mistakes to be reported', async () => {
      const text = await node.command('explain');
      return wrong.every(({ file }) => toldIn(text, file).length > 0) ? text : undefined;
    });
    for (const name of usedAllTheSame) await node.running(name);
    const log = (await readFile(join(node.dataDir, 'kubeling.log'), 'utf8')).replaceAll('\\"', '"');
    for (const { file, told } of wrong) {
      for (const [where, text] of [
        ['explain', story],
        ['log', log],
      ] as const) {
        const lines = toldIn(text, file);
        assert.equal(lines.length, 1, `${file} in ${where}: ${lines.join('\n')}`);
        assert.match(lines[0]?.split(pathOf(file))[1] ?? '', told);
      }
      assert.match(toldIn(story, file)[0] ?? '', /Warning +FailedValidation: /);
    }
    assert.deepEqual(
      (await node.containersOf('good')).map(({ id }) => id),
      ids,
    );
  });

  it('reports once that a manifest was corrected', async () => {
    for (const { file } of manifests) await rm(pathOf(file));
    const mended = (text: string, file: string) =>
      text.split('\n').filter((line) => line.includes(`${pathOf(file)} has no problem any more`));
    const story = await eventually('all to be recovered', async () => {
      const text = await node.command('explain');
      return wrong.every(({ file }) => mended(text, file).length > 0) ? text : undefined;
    });
    for (const { file } of wrong) assert.equal(mended(story, file).length, 1, file);
    assert.match(await node.get('/readyz?verbose'), /readyz check passed/);
  });
});
