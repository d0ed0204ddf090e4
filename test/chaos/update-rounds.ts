import assert from 'node:assert/strict';
import { join } from 'node:path';
import { busyboxImageName } from '../../src/containerd/index.ts';
import { freePorts } from '../free-ports.ts';
import { eventually, KubelingNode } from '../kubeling-node.ts';
import { ApiCaller } from './api-caller.ts';
import { keepLogs } from './kept-logs.ts';
import { type NumberVolume, numberLines, readerLooks, readerScript } from './volume-reader.ts';

export interface UpdateRoundsOptions {
  readonly updates: number;
  readonly tell: (line: string) => void;
  readonly interrupted?: Promise<never>;
}

export interface UpdateReport {
  readonly updates: number;
  /** How often the reader in the pod read all files. */
  readonly looks: number;
  readonly slowestMs: number;
}

const own = '/api/v1/namespaces/default';
const lines = 200;
/** The volumes in the order in which the reader reports them. */
const volumes: readonly NumberVolume[] = [
  { name: 'config', lines },
  { name: 'secret', lines },
  { name: 'projected', lines },
  { name: 'labels', lines: 1 },
];
const tellEvery = 50;

/**
 * Updates a config map, a secret and a label of a pod through the API sequentially: each update
 * must reach the files of the running pod before the next one, and the reader in the pod must never
 * read a torn, missing or older file.
 */
export class UpdateRounds {
  readonly #api: ApiCaller;
  readonly #options: UpdateRoundsOptions;
  readonly #said: string;
  #slowestMs = 0;

  static async run(options: UpdateRoundsOptions): Promise<UpdateReport> {
    const [port] = await freePorts(1);
    const node = await KubelingNode.open(undefined, ['--listen', `127.0.0.1:${port}`]);
    let report: UpdateReport | undefined;
    try {
      using api = await ApiCaller.open(join(node.dataDir, 'kubeconfig'));
      report = await UpdateRounds.#on(node, api, options);
    } catch (error) {
      options.tell(`logs are kept in ${await keepLogs(node.dataDir, 'updates')}`);
      throw error;
    } finally {
      const left = await node.leave();
      if (report !== undefined) assert.deepEqual(left, [], 'the machine must be as it was before');
    }
    return report;
  }

  static async #on(node: KubelingNode, api: ApiCaller, options: UpdateRoundsOptions): Promise<UpdateReport> {
    await answered(api, 'POST', 'configmaps', configMap(0));
    await answered(api, 'POST', 'secrets', secret(0));
    const { metadata } = await answered(api, 'POST', 'pods', readerPod());
    const { uid } = metadata as { readonly uid: string };
    const said = join(node.dataDir, 'kubelet/pods', uid, 'volumes/kubernetes.io~empty-dir/said');
    const rounds = new UpdateRounds(api, options, said);
    const { interrupted } = options;
    return await Promise.race([rounds.#all(), ...(interrupted === undefined ? [] : [interrupted])]);
  }

  private constructor(api: ApiCaller, options: UpdateRoundsOptions, said: string) {
    this.#api = api;
    this.#options = options;
    this.#said = said;
  }

  async #all(): Promise<UpdateReport> {
    const { updates, tell } = this.#options;
    await this.#read(0);
    for (let number = 1; number <= updates; number++) {
      const begun = performance.now();
      await answered(this.#api, 'PATCH', 'configmaps/numbers', configMap(number));
      await answered(this.#api, 'PATCH', 'secrets/numbers', secret(number));
      await answered(this.#api, 'PATCH', 'pods/reader', { metadata: label(number) });
      await this.#read(number);
      this.#slowestMs = Math.max(this.#slowestMs, performance.now() - begun);
      if (number % tellEvery === 0)
        tell(`update ${number} was read, the slowest so far in ${this.#slowest()} ms`);
    }
    const { count: looks } = await readerLooks(this.#said);
    return { updates, looks, slowestMs: this.#slowest() };
  }

  /** Waits until the files of every volume contain the update. */
  async #read(number: number): Promise<void> {
    let last = '';
    const look = async () => {
      const { count, numbers, wrong } = await readerLooks(this.#said);
      assert.equal(wrong, '', 'a reader must see every file whole, and none that is older');
      last = numbers.join(' ');
      const isRead = numbers.length === volumes.length && numbers.every((each) => each === number);
      return count > 0 && isRead ? true : undefined;
    };
    await eventually(`all volumes to say ${number}`, look, 180_000, () => last);
  }

  #slowest(): number {
    return Math.round(this.#slowestMs);
  }
}

async function answered(
  api: ApiCaller,
  method: string,
  path: string,
  object: object,
): Promise<Readonly<Record<string, unknown>>> {
  const { status, body } = await api.call(method, `${own}/${path}`, object);
  assert.ok(status === 200 || status === 201, `${method} ${path}: ${JSON.stringify(body)}`);
  return body;
}

const files = (value: string) => ({ a: value, b: value });
const label = (number: number) => ({ labels: { number: String(number) } });

function configMap(number: number): object {
  const data = files(numberLines(number, lines));
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'numbers' }, data };
}

function secret(number: number): object {
  const data = files(Buffer.from(numberLines(number, lines)).toString('base64'));
  return { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'numbers' }, data };
}

function readerPod(): object {
  const mounts = [...volumes, { name: 'said' }].map(({ name }) => ({ name, mountPath: `/${name}` }));
  const items = ['a', 'b'].map((path) => ({ path, fieldRef: { fieldPath: "metadata.labels['number']" } }));
  const command = ['sh', '-c', readerScript(volumes)];
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'reader', ...label(0) },
    spec: {
      terminationGracePeriodSeconds: 1,
      containers: [{ name: 'main', image: busyboxImageName, command, volumeMounts: mounts }],
      volumes: [
        { name: 'config', configMap: { name: 'numbers' } },
        { name: 'secret', secret: { secretName: 'numbers' } },
        { name: 'projected', projected: { sources: [{ configMap: { name: 'numbers' } }] } },
        { name: 'labels', downwardAPI: { items } },
        { name: 'said', emptyDir: {} },
      ],
    },
  };
}
