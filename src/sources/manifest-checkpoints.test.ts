import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { defaultRules, podManifest } from '../../test/fakes/manifests.ts';
import { MemoryManifestFiles } from '../../test/fakes/memory-source-files.ts';
import { settle, VirtualClock } from '../../test/fakes/virtual-clock.ts';
import { collectLogs, KubelingError } from '../lib/index.ts';
import type { Pod } from '../pods/index.ts';
import { FileSource } from './file-source.ts';
import { HttpSource } from './http-source.ts';
import { type CheckpointFiles, ManifestCheckpoints } from './manifest-checkpoints.ts';
import { StaticUids } from './manifest-claims.ts';
import { describeProblem } from './problems.ts';

const folder = '/etc/manifests';
const url = 'http://example.com/pods?token=abc';
const keptDirectory = '/root/kept';

function memoryKeptFiles(): CheckpointFiles & { readonly texts: Map<string, string> } {
  const texts = new Map<string, string>();
  return {
    texts,
    names: async (directory) =>
      [...texts.keys()]
        .filter((path) => path.startsWith(`${directory}/`))
        .map((path) => path.slice(directory.length + 1)),
    readEnd: async (path) => (texts.has(path) ? Buffer.from(texts.get(path) ?? '') : undefined),
    replace: async (path, text) => void texts.set(path, text),
    remove: async (path) => void texts.delete(path),
  };
}

/** A simulated machine on which manifest sources start and stop with their kubelet process. */
class Machine {
  readonly clock = new VirtualClock();
  readonly logs = collectLogs(this.clock);
  readonly manifests = new MemoryManifestFiles();
  readonly kept = memoryKeptFiles();
  uids = new StaticUids();
  answer: string | Error = new Error('connect ECONNREFUSED');

  constructor() {
    this.manifests.makeDirectory(folder);
  }

  file(): Promise<Life> {
    return this.#live((common) => new FileSource({ ...common, path: folder, files: this.manifests }), 'file');
  }

  http(): Promise<Life> {
    const get = async () => {
      if (this.answer instanceof Error) throw this.answer;
      return { status: 200, body: Buffer.from(this.answer) };
    };
    return this.#live((common) => new HttpSource({ ...common, url, headers: {}, get }), 'http');
  }

  async #live(make: (common: Common) => FileSource | HttpSource, kind: string): Promise<Life> {
    await import('yaml');
    const { clock, kept: files } = this;
    const sets: (readonly Pod[])[] = [];
    const reported: string[] = [];
    const stop = new AbortController();
    const { logger } = this.logs;
    const source = make({
      nodeName: 'node-a',
      rules: defaultRules,
      clock,
      logger,
      resyncMs: 20_000,
      uids: this.uids,
      lastGood: new ManifestCheckpoints({ files, directory: `${keptDirectory}/${kind}`, logger }),
      setPods: (pods) => void sets.push(pods),
      onProblem: (problem) => void reported.push(describeProblem(problem)),
    });
    const running = source.run(stop.signal);
    await this.pass(1_000);
    return {
      sets,
      told: reported,
      names: () => (sets.at(-1) ?? []).map(({ metadata }) => metadata.name),
      [Symbol.asyncDispose]: async () => {
        stop.abort();
        await running;
      },
    };
  }

  async pass(ms: number): Promise<void> {
    for (let turn = 0; turn < 5; turn++) await settle();
    await this.clock.advance(ms);
    for (let turn = 0; turn < 5; turn++) await settle();
  }
}

type Common = Omit<ConstructorParameters<typeof FileSource>[0], 'path' | 'files'>;

interface Life extends AsyncDisposable {
  readonly sets: (readonly Pod[])[];
  readonly told: string[];
  readonly names: () => readonly string[];
}

describe('two manifests that define the same pod name when kubeling starts', () => {
  it('of two manifests with the same pod name, the one whose pod ran before the restart stays in use', async () => {
    const machine = new Machine();
    machine.manifests.write(`${folder}/b.yaml`, podManifest('web', 'busybox:b'));
    let uid = '';
    {
      await using first = await machine.file();
      uid = first.sets.at(-1)?.[0]?.metadata.uid ?? '';
    }
    machine.manifests.write(`${folder}/a.yaml`, podManifest('web', 'busybox:a'));
    machine.uids = new StaticUids((each) => each === uid);
    await using second = await machine.file();
    assert.deepEqual(
      second.sets.at(-1)?.map(({ metadata }) => metadata.uid),
      [uid],
    );
    assert.match(second.told.join(), /a\.yaml.*b\.yaml/);
  });
});

const broken = 'kind: Pod\nspec: 3\n';

describe('invalid manifests when kubeling starts', () => {
  it('a manifest that is invalid at start keeps the pod of its last valid content, and is reported', async () => {
    const machine = new Machine();
    machine.manifests.write(`${folder}/a.yaml`, podManifest('a'));
    machine.manifests.write(`${folder}/b.yaml`, podManifest('b'));
    let before: Pod | undefined;
    {
      await using first = await machine.file();
      before = first.sets[0]?.[0];
    }
    machine.manifests.write(`${folder}/a.yaml`, broken);
    await using second = await machine.file();
    assert.deepEqual(second.sets[0]?.[0], before);
    assert.deepEqual(second.names(), ['a-node-a', 'b-node-a']);
    assert.equal(second.told.filter((line) => line.includes('a.yaml')).length > 0, true);
    machine.manifests.write(`${folder}/a.yaml`, podManifest('a', 'busybox:2'));
    await machine.pass(1_000);
    assert.equal(second.sets.at(-1)?.[0]?.spec.containers[0]?.image, 'busybox:2');
  });

  it('a manifest of which only a part was ever valid keeps the pods of that part', async () => {
    const machine = new Machine();
    const path = `${folder}/a.yaml`;
    machine.manifests.write(path, `${podManifest('a')}---\n${broken}`);
    {
      await using first = await machine.file();
      assert.deepEqual(first.names(), ['a-node-a']);
    }
    machine.manifests.write(path, broken);
    await using second = await machine.file();
    assert.deepEqual(second.names(), ['a-node-a']);
  });

  it('a manifest that was never valid defines no pods', async () => {
    const machine = new Machine();
    machine.manifests.write(`${folder}/a.yaml`, broken);
    await using life = await machine.file();
    assert.deepEqual(life.sets, [[]]);
  });

  it('the checkpoint of a manifest is dropped when its file was deleted while kubeling did not run', async () => {
    const machine = new Machine();
    machine.manifests.write(`${folder}/a.yaml`, podManifest('a'));
    machine.manifests.write(`${folder}/b.yaml`, podManifest('b'));
    {
      await using _first = await machine.file();
      assert.equal(machine.kept.texts.size, 2);
      machine.manifests.remove(`${folder}/a.yaml`);
      await machine.pass(1_000);
      assert.equal(machine.kept.texts.size, 1);
    }
    machine.manifests.remove(`${folder}/b.yaml`);
    await using second = await machine.file();
    assert.deepEqual(second.sets, [[]]);
    assert.equal(machine.kept.texts.size, 0);
  });

  it('a manifest that is restored a moment after the start keeps its pod', async () => {
    const machine = new Machine();
    machine.manifests.write(`${folder}/a.yaml`, podManifest('a'));
    {
      await using _first = await machine.file();
    }
    machine.manifests.remove(`${folder}/a.yaml`);
    const starting = machine.file();
    machine.manifests.write(`${folder}/a.yaml`, podManifest('a'));
    await using second = await starting;
    assert.deepEqual(
      second.sets.map((pods) => pods.length),
      [1],
    );
  });

  it('the checkpoint of an unchanged manifest is not saved again', async () => {
    const machine = new Machine();
    machine.manifests.write(`${folder}/a.yaml`, podManifest('a'));
    {
      await using _first = await machine.file();
    }
    const [path = ''] = machine.kept.texts.keys();
    machine.kept.replace = () => Promise.reject(new Error('this test allows no checkpoint to be written'));
    await using second = await machine.file();
    assert.deepEqual(second.names(), ['a-node-a']);
    assert.ok(machine.kept.texts.has(path));
    assert.deepEqual(
      machine.logs.records.toArray().filter(({ severity }) => severity === 'error'),
      [],
    );
  });

  it('a failure to save checkpoints does not prevent the delivery of pods', async () => {
    const machine = new Machine();
    machine.kept.replace = () => Promise.reject(new KubelingError('FILE_WRITE', 'the disk is full'));
    machine.manifests.write(`${folder}/a.yaml`, podManifest('a'));
    await using life = await machine.file();
    assert.deepEqual(life.names(), ['a-node-a']);
    assert.match(JSON.stringify(machine.logs.records.toArray()), /Cannot save the last good manifest/);
  });
});

describe('manifest URLs without a usable response when kubeling starts', () => {
  it('a manifest URL keeps the pods of its last valid response over a restart', async () => {
    const machine = new Machine();
    machine.answer = podManifest('a');
    {
      await using _first = await machine.http();
    }
    for (const response of [new Error('connect ECONNREFUSED'), broken]) {
      machine.answer = response;
      await using life = await machine.http();
      assert.deepEqual(life.names(), ['a-node-a']);
      assert.equal(life.told.length > 0, true);
    }
    assert.equal(
      [...machine.kept.texts.keys()].join().includes('abc'),
      false,
      'no file name contains the token',
    );
  });

  it('a manifest URL that never sent a response delivers nothing', async () => {
    await using life = await new Machine().http();
    assert.deepEqual(life.sets, []);
  });

  it('the checkpoint of a manifest URL is dropped with its last pod', async () => {
    const machine = new Machine();
    machine.answer = podManifest('a');
    await using life = await machine.http();
    machine.answer = '';
    await machine.pass(20_000);
    assert.deepEqual(life.names(), []);
    assert.equal(machine.kept.texts.size, 0);
  });
});

it('rejects the second pod with the same metadata.uid in a file and a URL, until the first is removed', async () => {
  const withUid = (name: string) => podManifest(name).replace('metadata:', 'metadata:\n  uid: fixed');
  const machine = new Machine();
  machine.manifests.write(`${folder}/a.yaml`, withUid('a'));
  machine.answer = withUid('b');
  await using file = await machine.file();
  await using http = await machine.http();
  assert.deepEqual([file.names(), http.names()], [['a-node-a'], []]);
  assert.match(
    http.told[0] ?? '',
    /http:\/\/example\.com\/pods:1:1: metadata\.uid: must be unique: a pod of the UID fixed is already defined at \/etc\/manifests\/a\.yaml:1/,
  );
  machine.manifests.remove(`${folder}/a.yaml`);
  await machine.pass(20_000);
  assert.deepEqual([file.names(), http.names()], [[], ['b-node-a']]);
  machine.manifests.write(`${folder}/a.yaml`, withUid('a'));
  await machine.pass(1_000);
  assert.deepEqual(file.names(), []);
  assert.match(
    file.told[0] ?? '',
    /a\.yaml:1:1: metadata\.uid: must be unique: .* is already defined at http:\/\/example\.com\/pods:1/,
  );
});
