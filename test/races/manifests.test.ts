import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { hostManifestFiles } from '../../src/sources/index.ts';
import { manifestDirectory } from '../simulation/manifests.ts';
import { manifest } from './pods.ts';
import { RaceNode } from './race-node.ts';

/** The names of all pods with a running sandbox. */
function running(node: RaceNode): string {
  const names = node.world.runtime.sandboxes().flatMap((each) => (each.running ? [each.podName] : []));
  return names
    .map((name) => name.replace(/-node$/, ''))
    .sort()
    .join(' ');
}

it('manifest dir deleted, recreated, renamed over, emptied, retargeted: pods follow the manifests within the poll interval, and removed pods do not come back', async () => {
  for (const hints of ['heard', 'missed'] as const) {
    await using node = await RaceNode.start();
    const { manifests } = node.world;
    const becomes = async (expected: string) => {
      if (hints === 'missed') manifests.dropWatchers();
      await node.until(`${expected} runs`, () => running(node) === expected, 25_000);
      await node.pass(25_000);
      assert.equal(running(node), expected);
    };
    node.write('one', manifest('one'));
    await becomes('one');
    manifests.remove(manifestDirectory);
    await becomes('');
    // Creates a directory with the same name again, with another inode.
    node.write('two', manifest('two'));
    await becomes('two');
    manifests.remove(manifestDirectory);
    node.write('three', manifest('three'));
    await becomes('three');
    node.remove('three');
    await becomes('');
    manifests.write(`${manifestDirectory}/.hidden`, 'nothing');
    await becomes('');
    await node.becomesClean(5_000);
  }
});

it('manifest dir deleted, recreated, renamed over, emptied, retargeted: pods follow the manifests also with real files and inotify watches', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'kubeling-races-'));
  const at = (...names: readonly string[]) => join(directory, ...names);
  const put = async (folder: string, name: string, revision = 0) => {
    await mkdir(at(folder), { recursive: true });
    await writeFile(at('new.yaml'), manifest(name, { revision }));
    await rename(at('new.yaml'), at(folder, `${name}.yaml`));
  };
  await put('first', 'one');
  await symlink('first', at('manifests'));
  try {
    // The directory is listed only once an hour, so that only the watches can report changes.
    const settings = { staticPodPath: at('manifests'), fileCheckMs: 3_600_000 };
    await using node = await RaceNode.start({ settings, machine: { manifests: hostManifestFiles() } });
    const becomes = async (expected: string) => {
      for (let look = 0; running(node) !== expected; look++) {
        assert.ok(look < 5_000, `${running(node)} runs, not ${expected}`);
        await breathe(node, 10);
      }
      for (let look = 0; look < 20; look++) await breathe(node, 100);
      assert.equal(running(node), expected);
    };
    await becomes('one');
    await rm(at('first'), { recursive: true });
    await becomes('');
    await put('first', 'two');
    await becomes('two');
    const before = await node.uidOf('two');
    await put('first', 'two', 1);
    for (let look = 0; look < 5_000 && node.podOf('two')?.metadata.uid === before; look++)
      await breathe(node, 10);
    await becomes('two');
    assert.notEqual(await node.uidOf('two'), before);
    await put('second', 'three');
    await rename(at('first'), at('aside'));
    await rename(at('second'), at('first'));
    await becomes('three');
    await rm(at('first', 'three.yaml'));
    await becomes('');
    await put('aside', 'four');
    await becomes('');
    await put('third', 'five');
    await symlink('third', at('link'));
    await rename(at('link'), at('manifests'));
    await becomes('five');
    await put('first', 'six');
    await becomes('five');
  } finally {
    await rm(directory, { recursive: true });
  }
});

/** Advances virtual time, and waits in real time for operations on real files. */
async function breathe(node: RaceNode, ms: number): Promise<void> {
  await node.pass(ms);
  await new Promise((resolve) => setTimeout(resolve, 1));
}

const yaml = ['apiVersion: v1', 'kind: Pod', 'metadata:', '  name: NAME', 'spec:', '  containers:'];
const container = ['  - name: app', '    image: localhost/app:1', '    command: [app, "{}"]', ''];

function text(name: string, lineEnd = '\n'): string {
  return [...yaml, ...container].join(lineEnd).replace('NAME', name);
}

const bad: Readonly<Record<string, string | Uint8Array>> = {
  empty: '',
  binary: Uint8Array.from({ length: 4_096 }, (_, index) => (index * 7) % 256),
  huge: Buffer.alloc(11 * 2 ** 20, text('huge')),
  kind: text('kind').replace('kind: Pod', 'kind: Deployment'),
  nameless: text('').replace('  name: \n', '  labels: {a: b}\n'),
  long: text('x'.repeat(254)),
};

it('empty, binary, 11 MiB, wrong kind, no name, long name, BOM, CRLF: each invalid manifest is logged, and other pods are not affected', async () => {
  await using node = await RaceNode.start();
  const well = await node.runsStatic('well', manifest('well'));
  for (const [name, content] of Object.entries(bad)) node.write(name, content);
  // These two manifests are unusual but valid.
  node.write('marked', `\uFEFF${text('marked')}`);
  node.write('dos', text('dos', '\r\n'));
  await node.until('the unusual ones run', () => running(node) === 'dos marked well', 5_000);
  await node.pass(65_000);
  const told = (name: string) => node.logged(`${manifestDirectory}/${name}.yaml`);
  const problems = node.kubelet.endpoints
    .sourceProblems()
    .map(({ path }) => path.replace(`${manifestDirectory}/`, ''));
  for (const name of Object.keys(bad)) {
    assert.equal(told(name), 1, `${name} was told ${told(name)} times`);
    assert.ok(problems.includes(`${name}.yaml`), `${name} is no problem`);
  }
  assert.deepEqual([told('marked'), told('dos'), told('well')], [0, 0, 0]);
  assert.equal(running(node), 'dos marked well');
  assert.equal(node.of(well, 'container-started', 'container-exited').length, 1);
  // A manifest that becomes invalid stops no container; when it is valid again the pod is
  // unchanged.
  for (const content of Object.values(bad)) {
    node.write('well', content);
    await node.pass(25_000);
  }
  assert.equal(node.of(well, 'container-started', 'container-exited').length, 1);
  for (const name of Object.keys(bad)) node.remove(name);
  node.write('well', manifest('well'));
  await node.pass(25_000);
  assert.deepEqual(node.kubelet.endpoints.sourceProblems(), []);
  assert.equal(node.of(well, 'container-started', 'container-exited').length, 1);
});
