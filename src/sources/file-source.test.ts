import assert from 'node:assert/strict';
import { test } from 'node:test';
import { defaultRules, podManifest } from '../../test/fakes/manifests.ts';
import { MemoryManifestFiles } from '../../test/fakes/memory-source-files.ts';
import { settle, VirtualClock } from '../../test/fakes/virtual-clock.ts';
import { type CollectedLogs, collectLogs } from '../lib/index.ts';
import type { Pod } from '../pods/index.ts';
import { FileSource } from './file-source.ts';
import { describeProblem } from './problems.ts';

const folder = '/etc/manifests';

interface Rig extends AsyncDisposable {
  readonly clock: VirtualClock;
  readonly files: MemoryManifestFiles;
  readonly source: FileSource;
  readonly sets: (readonly Pod[])[];
  readonly told: string[];
  readonly mended: string[];
  readonly logs: CollectedLogs;
  readonly pods: () => readonly string[];
}

/** A source over in-memory manifests under virtual time. */
async function run(prepare: (files: MemoryManifestFiles) => void = () => {}, path = folder): Promise<Rig> {
  const clock = new VirtualClock();
  const files = new MemoryManifestFiles();
  files.makeDirectory(folder);
  prepare(files);
  const sets: (readonly Pod[])[] = [];
  const told: string[] = [];
  const mended: string[] = [];
  const logs = collectLogs(clock);
  const source = new FileSource({
    path,
    files,
    clock,
    nodeName: 'node-a',
    rules: defaultRules,
    logger: logs.logger,
    resyncMs: 20_000,
    setPods: (pods) => void sets.push(pods),
    onProblem: (problem) => void told.push(describeProblem(problem)),
    onResolved: (path) => void mended.push(path),
  });
  const stop = new AbortController();
  const running = source.run(stop.signal);
  await clock.advance(0);
  await untilQuiet();
  return {
    clock,
    files,
    source,
    sets,
    told,
    mended,
    logs,
    pods: () =>
      (sets.at(-1) ?? []).map(({ metadata, spec }) => `${metadata.name} ${spec.containers[0]?.image}`),
    [Symbol.asyncDispose]: async () => {
      stop.abort();
      await running;
      assert.equal(clock.pendingTimers, 0, 'no timer may be left');
    },
  };
}

/** The YAML library is loaded on first use, which takes real time. */
async function untilQuiet(): Promise<void> {
  await import('yaml');
  for (let turn = 0; turn < 5; turn++) await settle();
}

test('delivers the first new pods while other manifests are still being read', async () => {
  await using rig = await run((files) => files.write(`${folder}/old.yaml`, podManifest('old')));
  await rig.clock.advance(5_000);
  rig.sets.length = 0;
  rig.files.write(`${folder}/old.yaml`, podManifest('old', 'busybox:2'));
  for (const name of ['a', 'b', 'c', 'd', 'e']) rig.files.write(`${folder}/${name}.yaml`, podManifest(name));
  await rig.clock.advance(0);
  await untilQuiet();
  assert.deepEqual(
    rig.sets.map((pods) => pods.length),
    [2, 3, 5, 6],
  );
  const images = (pods: readonly Pod[] | undefined) =>
    pods?.find(({ metadata }) => metadata.name.startsWith('old'))?.spec.containers[0]?.image;
  assert.deepEqual(rig.sets.map(images), ['busybox:1', 'busybox:1', 'busybox:1', 'busybox:2']);
});

test('delivers nothing before all manifests are read in the first scan', async () => {
  await using rig = await run((files) => {
    for (const name of ['a', 'b', 'c']) files.write(`${folder}/${name}.yaml`, podManifest(name));
  });
  assert.deepEqual(
    rig.sets.map((pods) => pods.length),
    [3],
  );
});

test('reads a directory immediately, in the order of names', async () => {
  await using rig = await run((files) => {
    files.write(`${folder}/b.yaml`, podManifest('b'));
    files.write(
      `${folder}/a.json`,
      '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"name":"x","image":"y:1"}]}}',
    );
    files.write(`${folder}/.hidden.yaml`, podManifest('hidden'));
    files.makeDirectory(`${folder}/sub`);
    files.write(`${folder}/sub/c.yaml`, podManifest('c'));
  });
  assert.deepEqual(rig.pods(), ['a-node-a y:1', 'b-node-a busybox:1']);
  assert.equal(rig.sets.length, 1);
  assert.deepEqual(rig.told, []);
});

test('gives a static pod its annotations, name, node and toleration', async () => {
  await using rig = await run((files) => files.write(`${folder}/a.yaml`, podManifest('a')));
  const [pod] = rig.sets[0] ?? [];
  assert.equal(pod?.metadata.namespace, 'default');
  assert.equal(pod?.spec.nodeName, 'node-a');
  assert.equal(pod?.status.phase, 'Pending');
  assert.equal(pod?.metadata.annotations?.['kubernetes.io/config.hash'], pod?.metadata.uid);
  assert.deepEqual(pod?.spec.tolerations, [{ operator: 'Exists', effect: 'NoExecute' }]);
});

test('follows the first hint after a quiet period immediately', async () => {
  await using rig = await run();
  await rig.clock.advance(5_000);
  rig.files.write(`${folder}/a.yaml`, podManifest('a'));
  await rig.clock.advance(0);
  assert.deepEqual(rig.pods(), ['a-node-a busybox:1']);
});

test('delays further hints by 100 ms, however many come', async () => {
  await using rig = await run();
  await rig.clock.advance(5_000);
  for (let edit = 0; edit < 300; edit++) {
    rig.files.write(`${folder}/a.yaml`, podManifest('a', `busybox:${edit}`));
    await rig.clock.advance(10);
  }
  await rig.clock.advance(100);
  assert.deepEqual(rig.pods(), ['a-node-a busybox:299']);
  assert.ok(rig.sets.length > 20 && rig.sets.length <= 33, `${rig.sets.length} lists in three seconds`);
});

test('finds a change without a hint in the periodic scan', async () => {
  await using rig = await run();
  rig.files.dropWatchers();
  rig.files.write(`${folder}/a.yaml`, podManifest('a'));
  await rig.clock.advance(19_000);
  assert.deepEqual(rig.pods(), []);
  await rig.clock.advance(1_500);
  assert.deepEqual(rig.pods(), ['a-node-a busybox:1']);
});

test('delivers nothing when a scan finds no change', async () => {
  await using rig = await run((files) => files.write(`${folder}/a.yaml`, podManifest('a')));
  await rig.clock.advance(120_000);
  assert.equal(rig.sets.length, 1);
});

test('keeps the pod when a manifest is removed and put back within a moment', async () => {
  await using rig = await run((files) => files.write(`${folder}/a.yaml`, podManifest('a')));
  await rig.clock.advance(1_000);
  rig.files.remove(`${folder}/a.yaml`);
  await rig.clock.advance(5);
  rig.files.write(`${folder}/a.yaml`, podManifest('a'));
  await rig.clock.advance(30_000);
  assert.equal(rig.sets.length, 1);
});

test('removes the pod of a removed manifest within a few milliseconds', async () => {
  await using rig = await run((files) => files.write(`${folder}/a.yaml`, podManifest('a')));
  await rig.clock.advance(1_000);
  rig.files.remove(`${folder}/a.yaml`);
  await rig.clock.advance(15);
  assert.deepEqual(rig.sets.at(-1), []);
});

test('delivers an empty list for a missing directory and checks it each second', async () => {
  await using rig = await run((files) => files.remove(folder));
  assert.deepEqual(rig.sets, [[]]);
  rig.files.dropWatchers();
  rig.files.write(`${folder}/a.yaml`, podManifest('a'));
  await rig.clock.advance(1_100);
  assert.deepEqual(rig.pods(), ['a-node-a busybox:1']);
});

test('reports a removed directory once with its consequence, and its return once', async () => {
  await using rig = await run((files) => files.write(`${folder}/a.yaml`, podManifest('a')));
  rig.files.remove(folder);
  await rig.clock.advance(60_000);
  assert.deepEqual(rig.pods(), []);
  const told = [
    `${folder}: does not exist: its pods are terminated, and no static pods run from it until it exists again`,
  ];
  assert.deepEqual(rig.told, told);
  assert.deepEqual(rig.source.problems().map(describeProblem), told);
  assert.deepEqual(rig.mended, []);
  rig.files.write(`${folder}/a.yaml`, podManifest('a'));
  await rig.clock.advance(60_000);
  assert.deepEqual([rig.told, rig.mended, rig.source.problems()], [told, [folder], []]);
});

test('ignores a directory that disappears for a moment only', async () => {
  await using rig = await run((files) => files.write(`${folder}/a.yaml`, podManifest('a')));
  rig.files.remove(folder);
  await rig.clock.advance(50);
  rig.files.write(`${folder}/a.yaml`, podManifest('a'));
  await rig.clock.advance(60_000);
  assert.deepEqual([rig.told, rig.sets.length], [[], 1]);
});

test('reports a failed watch once and retries it with each scan', async () => {
  await using rig = await run((files) => files.failWatches(new Error('ENOSPC: too many watches')));
  const lines = () => [...rig.logs.records].filter(({ message }) => /atch(ing)? manifests/.test(message));
  await rig.clock.advance(50_000);
  assert.deepEqual(
    lines().map(({ severity }) => severity),
    ['warning'],
  );
  rig.files.failWatches(undefined);
  await rig.clock.advance(20_000);
  rig.files.write(`${folder}/a.yaml`, podManifest('a'));
  await rig.clock.advance(1);
  assert.deepEqual(rig.pods(), ['a-node-a busybox:1']);
  await rig.clock.advance(40_000);
  assert.equal(lines().at(-1)?.message, 'Watching manifests again');
  assert.equal(lines().length, 2);
});

test('converges when the manifest directory is deleted, recreated and emptied', async () => {
  await using rig = await run((files) => files.write(`${folder}/a.yaml`, podManifest('a')));
  rig.files.remove(folder);
  await rig.clock.advance(2_000);
  assert.deepEqual(rig.pods(), []);
  rig.files.makeDirectory(folder);
  await rig.clock.advance(2_000);
  assert.deepEqual(rig.pods(), []);
  rig.files.write(`${folder}/b.yaml`, podManifest('b'));
  await rig.clock.advance(2_000);
  assert.deepEqual(rig.pods(), ['b-node-a busybox:1']);
});

test('keeps the pods of a directory that cannot be read, reports it once, and retries with back-off', async () => {
  await using rig = await run((files) => files.write(`${folder}/a.yaml`, podManifest('a')));
  rig.files.fail(folder, new Error('EIO: i/o error'));
  rig.files.write(`${folder}/b.yaml`, podManifest('b'));
  await rig.clock.advance(60_000);
  assert.equal(rig.sets.length, 1);
  assert.deepEqual(rig.told, [`${folder}: cannot be read: EIO: i/o error`]);
  rig.files.fail(folder, undefined);
  await rig.clock.advance(21_000);
  assert.equal(rig.pods().length, 2);
  assert.deepEqual(rig.source.problems(), []);
});

test('keeps the pod after an invalid edit, reports the position once, and replaces the pod after a valid edit', async () => {
  await using rig = await run((files) => files.write(`${folder}/a.yaml`, podManifest('a')));
  const first = rig.sets[0]?.[0];
  rig.files.write(`${folder}/a.yaml`, podManifest('a', '""'));
  await rig.clock.advance(60_000);
  assert.equal(rig.sets.length, 1);
  const problem = `${folder}/a.yaml:8:5: spec.containers[0].image: Required value`;
  assert.deepEqual(rig.told, [problem]);
  assert.deepEqual(rig.source.problems().map(describeProblem), [problem]);
  rig.files.write(`${folder}/a.yaml`, podManifest('a', 'busybox:2'));
  await rig.clock.advance(1_000);
  assert.deepEqual(rig.pods(), ['a-node-a busybox:2']);
  assert.notEqual(rig.sets.at(-1)?.[0]?.metadata.uid, first?.metadata.uid);
  assert.deepEqual(rig.source.problems(), []);
});

test('removes the pod when its invalid manifest is deleted', async () => {
  await using rig = await run((files) => files.write(`${folder}/a.yaml`, podManifest('a')));
  rig.files.write(`${folder}/a.yaml`, 'spec: [');
  await rig.clock.advance(1_000);
  rig.files.remove(`${folder}/a.yaml`);
  await rig.clock.advance(1_000);
  assert.deepEqual(rig.pods(), []);
  assert.deepEqual(rig.source.problems(), []);
});

test('reports nothing about a file that becomes valid a moment later', async () => {
  await using rig = await run();
  await rig.clock.advance(1_000);
  rig.files.write(`${folder}/a.yaml`, '');
  await rig.clock.advance(50);
  rig.files.write(`${folder}/a.yaml`, podManifest('a'));
  await rig.clock.advance(30_000);
  assert.deepEqual(rig.told, []);
  assert.deepEqual(rig.pods(), ['a-node-a busybox:1']);
});

test('validates each document and each list item separately', async () => {
  const list = `apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Pod
  metadata: {name: c}
  spec: {containers: [{name: x, image: 'y:1'}]}
- apiVersion: v1
  kind: Service
  metadata: {name: d}
`;
  await using rig = await run((files) =>
    files.write(
      `${folder}/all.yaml`,
      [podManifest('a'), 'kind: [', '', podManifest('b'), list].join('---\n'),
    ),
  );
  assert.deepEqual(rig.pods(), ['a-node-a busybox:1', 'b-node-a busybox:1', 'c-node-a y:1']);
  await rig.clock.advance(1_000);
  assert.equal(rig.told.length, 2);
  assert.match(rig.told[1] ?? '', /all\.yaml:\d+:\d+: kind: must be Pod: current value is "Service"/);
});

test('removes no pod of a file while one of its documents is invalid', async () => {
  await using rig = await run((files) =>
    files.write(`${folder}/all.yaml`, [podManifest('a'), podManifest('b')].join('---\n')),
  );
  rig.files.write(`${folder}/all.yaml`, [podManifest('a', 'busybox:2'), 'kind: ['].join('---\n'));
  await rig.clock.advance(1_000);
  assert.deepEqual(rig.pods(), ['a-node-a busybox:2', 'b-node-a busybox:1']);
  rig.files.write(`${folder}/all.yaml`, podManifest('a', 'busybox:2'));
  await rig.clock.advance(1_000);
  assert.deepEqual(rig.pods(), ['a-node-a busybox:2']);
});

test('ignores copies left behind by editors and package managers', async () => {
  await using rig = await run((files) => {
    files.write(`${folder}/web.yaml`, podManifest('web'));
    for (const end of ['~', '.bak', '.swp', '.orig', '.rpmsave'])
      files.write(`${folder}/web.yaml${end}`, podManifest('web', 'busybox:old'));
  });
  await rig.clock.advance(1_000);
  assert.deepEqual(rig.pods(), ['web-node-a busybox:1']);
  assert.deepEqual(rig.told, []);
});

test('keeps the pod in use when a second file defines it, and reports both locations', async () => {
  await using rig = await run((files) => files.write(`${folder}/m.yaml`, podManifest('web')));
  rig.files.write(`${folder}/a.yaml`, podManifest('web', 'busybox:other'));
  await rig.clock.advance(1_000);
  assert.deepEqual(rig.pods(), ['web-node-a busybox:1']);
  assert.deepEqual(rig.told, [
    `${folder}/a.yaml:1:1: metadata.name: must be unique: the pod default/web-node-a is already defined at ${folder}/m.yaml:1, which stays in use`,
  ]);
  rig.files.write(`${folder}/m.yaml`, podManifest('web', 'busybox:edited'));
  await rig.clock.advance(1_000);
  assert.deepEqual(rig.pods(), ['web-node-a busybox:edited'], 'uses an edit of the manifest in use');
  rig.files.remove(`${folder}/m.yaml`);
  await rig.clock.advance(1_000);
  assert.deepEqual(rig.pods(), ['web-node-a busybox:other'], 'the other manifest takes over immediately');
  assert.deepEqual(rig.source.problems(), []);
});

test('uses the first of two new files that define the same pod', async () => {
  await using rig = await run((files) => {
    files.write(`${folder}/b.yaml`, podManifest('web', 'busybox:b'));
    files.write(`${folder}/a.yaml`, podManifest('web', 'busybox:a'));
  });
  assert.deepEqual(rig.pods(), ['web-node-a busybox:a']);
});

test('rejects the second of two manifests with the same metadata.uid', async () => {
  const withUid = (name: string) => podManifest(name).replace('metadata:', 'metadata:\n  uid: fixed');
  await using rig = await run((files) => {
    files.write(`${folder}/a.yaml`, withUid('a'));
    files.write(`${folder}/b.yaml`, withUid('b'));
  });
  await rig.clock.advance(1_000);
  assert.deepEqual(rig.pods(), ['a-node-a busybox:1']);
  assert.match(
    rig.told[0] ?? '',
    /b\.yaml:1:1: metadata\.uid: must be unique: a pod of the UID fixed is already defined at .*a\.yaml:1/,
  );
});

test('reads a single file as the path, also when it is replaced or unreadable at first', async () => {
  await using rig = await run((files) => files.write('/etc/one.yaml', 'nonsense'), '/etc/one.yaml');
  assert.deepEqual(rig.sets, [[]], 'an unusable file counts as a list');
  rig.files.replace('/etc/one.yaml', podManifest('a'));
  await rig.clock.advance(200);
  assert.deepEqual(rig.pods(), ['a-node-a busybox:1']);
  rig.files.replace('/etc/one.yaml', podManifest('b'));
  await rig.clock.advance(200);
  assert.deepEqual(rig.pods(), ['b-node-a busybox:1']);
  rig.files.remove('/etc/one.yaml');
  await rig.clock.advance(200);
  assert.deepEqual(rig.pods(), []);
});

test('uses a pod despite a warning', async () => {
  await using rig = await run((files) =>
    files.write(`${folder}/a.yaml`, podManifest('a', 'x:1', '  restartPolcy: Never\n')),
  );
  await rig.clock.advance(1_000);
  assert.deepEqual(rig.pods(), ['a-node-a x:1']);
  assert.deepEqual(rig.told, [
    `${folder}/a.yaml:9:3: spec.restartPolcy: is not a known field and has no effect (did you mean restartPolicy?)`,
  ]);
});

test('names the pods that a problem concerns, as far as they are known', async () => {
  await using rig = await run((files) => {
    files.write(`${folder}/kept.yaml`, podManifest('kept'));
    files.write(`${folder}/bad.yaml`, podManifest('bad', '""'));
    files.write(`${folder}/nonsense.yaml`, 'a: [');
  });
  rig.files.write(`${folder}/kept.yaml`, '{');
  await rig.clock.advance(1_000);
  assert.deepEqual(
    rig.source.problems().map(({ path, pods }) => [path.slice(folder.length + 1), pods]),
    [
      ['bad.yaml', ['bad-node-a_default']],
      ['kept.yaml', ['kept-node-a_default']],
      ['nonsense.yaml', []],
    ],
  );
  rig.files.remove(folder);
  await rig.clock.advance(5_000);
  assert.deepEqual(
    rig.source.problems().map(({ pods }) => pods),
    [undefined],
  );
});
