import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseMountinfo, pick, type Random, randomInt, seededRandom } from '../../src/lib/index.ts';
import { DriverProcess } from '../csi/driver-process.ts';
import { freePorts } from '../free-ports.ts';
import { eventually, KubelingNode } from '../kubeling-node.ts';
import { ApiCaller } from './api-caller.ts';
import { keepLogs } from './kept-logs.ts';
import { Canaries, drivenVolume, driverName, referred, volumePod } from './volume-pods.ts';

export interface VolumeRoundsOptions {
  readonly kills: number;
  readonly seed: number;
  readonly tell: (line: string) => void;
  readonly interrupted?: Promise<never>;
}

export interface VolumeReport {
  readonly kills: number;
  readonly killsAtStart: number;
  /** The number of kills of the CSI driver, each together with kubeling. */
  readonly driverKills: number;
  /**
   * The number of kills that happened after a pod had added a mount; `unmounting` counts the kills
   * after a pod had removed a mount.
   */
  readonly mounting: number;
  readonly unmounting: number;
  readonly made: number;
  readonly removed: number;
}

const mostPods = 4;
const longestPauseMs = 900;
const longestStartMs = 1_200;
/** How long to wait for a change of the mounts before the kill. */
const momentWithinMs = 2_000;
const settleEvery = 5;
/**
 * The number of mounts that a pod adds and removes sequentially; kubeling is killed at any of them.
 */
const mountsOfPod = 10;
const driverKillEvery = 4;
interface Surroundings {
  readonly hostPath: string;
  readonly canaries: Canaries;
  readonly driver: DriverProcess;
}

const podsPath = '/api/v1/namespaces/default/pods';
const moments = ['mounting', 'unmounting', 'any'] as const;

/**
 * Kills kubeling during mounts, unmounts and in between, with pods that use volumes of every kind:
 * afterwards every desired pod must run, no leftovers of other pods may exist, and no foreign file
 * may be changed.
 */
export class VolumeRounds {
  readonly #node: KubelingNode;
  readonly #api: ApiCaller;
  readonly #options: VolumeRoundsOptions;
  readonly #random: Random;
  readonly #hostPath: string;
  readonly #canaries: Canaries;
  readonly #driver: DriverProcess;
  /** The UIDs of the desired pods by name. */
  readonly #wanted = new Map<string, string>();
  #figures = { kills: 0, killsAtStart: 0, driverKills: 0, mounting: 0, unmounting: 0, made: 0, removed: 0 };

  static async run(options: VolumeRoundsOptions): Promise<VolumeReport> {
    const outside = await mkdtemp(join(tmpdir(), 'klg-outside-'));
    const driven = join('driver/volumes', drivenVolume);
    const canaries = await Canaries.put(
      ['host', 'local', 'claimed', driven].map((path) => join(outside, path)),
    );
    const [port] = await freePorts(1);
    let report: VolumeReport | undefined;
    try {
      const node = await KubelingNode.open(undefined, ['--listen', `127.0.0.1:${port}`]);
      try {
        report = await VolumeRounds.#on(node, options, { outside, canaries });
      } finally {
        const left = await node.leave();
        if (report !== undefined) assert.deepEqual(left, [], 'the machine must be as it was before');
      }
      assert.deepEqual(await canaries.dead(), [], 'what is outside outlives the node');
    } finally {
      await rm(outside, { recursive: true, force: true });
    }
    return report;
  }

  static async #on(
    node: KubelingNode,
    options: VolumeRoundsOptions,
    { outside, canaries }: { readonly outside: string; readonly canaries: Canaries },
  ): Promise<VolumeReport> {
    using api = await ApiCaller.open(join(node.dataDir, 'kubeconfig'));
    for (const [path, object] of referred({
      local: join(outside, 'local'),
      claimed: join(outside, 'claimed'),
    })) {
      const { status, body } = await api.call('POST', path, object);
      assert.equal(status, 201, JSON.stringify(body));
    }
    const registry = join(node.dataDir, 'kubelet/plugins_registry');
    const driver = new DriverProcess(driverName, join(outside, 'driver'), registry);
    const rounds = new VolumeRounds(node, api, options, {
      hostPath: join(outside, 'host'),
      canaries,
      driver,
    });
    const { interrupted } = options;
    try {
      await driver.start();
      await Promise.race([rounds.#all(), ...(interrupted === undefined ? [] : [interrupted])]);
    } catch (error) {
      options.tell(`logs are kept in ${await keepLogs(node.dataDir, `volumes-${options.seed}`)}`);
      throw error;
    } finally {
      await driver.kill();
    }
    return rounds.#figures;
  }

  private constructor(
    node: KubelingNode,
    api: ApiCaller,
    options: VolumeRoundsOptions,
    { hostPath, canaries, driver }: Surroundings,
  ) {
    this.#node = node;
    this.#api = api;
    this.#options = options;
    this.#random = seededRandom(options.seed);
    this.#hostPath = hostPath;
    this.#canaries = canaries;
    this.#driver = driver;
  }

  async #all(): Promise<void> {
    const { kills, tell } = this.#options;
    for (let round = 1; this.#figures.kills < kills; round++) {
      const moment = moments[(round - 1) % moments.length] ?? 'any';
      await this.#change(moment);
      await this.#awaitMoment(moment);
      const isDriverGone = randomInt(this.#random, driverKillEvery) === 0;
      if (isDriverGone) await this.#killDriver();
      await this.#kill();
      if (this.#figures.kills < kills && randomInt(this.#random, 4) === 0) await this.#killAtStart();
      await this.#node.start();
      if (isDriverGone) await this.#driver.start();
      if (round % settleEvery === 0) await this.#settle();
      tell(`kill ${this.#figures.kills} (${moment}): ${this.#wanted.size} pods are wanted`);
    }
    await this.#settle();
    for (const name of [...this.#wanted.keys()]) await this.#delete(name);
    await this.#settle();
  }

  /** Creates a pod, which begins to mount, or deletes one, which begins to unmount. */
  async #change(moment: (typeof moments)[number]): Promise<void> {
    const names = [...this.#wanted.keys()];
    const leaving =
      moment === 'unmounting' || names.length >= mostPods ? pick(this.#random, names) : undefined;
    if (leaving !== undefined) await this.#delete(leaving);
    if (moment !== 'unmounting' || leaving === undefined) await this.#create();
  }

  async #create(): Promise<void> {
    const name = `v${++this.#figures.made}`;
    const { status, body } = await this.#api.call('POST', podsPath, volumePod(name, this.#hostPath));
    assert.equal(status, 201, JSON.stringify(body));
    this.#wanted.set(name, (body['metadata'] as { readonly uid: string }).uid);
  }

  /** Half of the pods are force-deleted, so they are missing in the API when kubeling restarts. */
  async #delete(name: string): Promise<void> {
    const seconds = randomInt(this.#random, 2);
    const { status } = await this.#api.call('DELETE', `${podsPath}/${name}?gracePeriodSeconds=${seconds}`);
    assert.ok(status === 200 || status === 202, `deleting ${name} was answered with ${status}`);
    this.#wanted.delete(name);
    this.#figures.removed++;
  }

  async #awaitMoment(moment: (typeof moments)[number]): Promise<void> {
    if (moment === 'any') return await pause(randomInt(this.#random, longestPauseMs));
    const before = new Set(await this.#mounts());
    const isNow = async () => {
      const now = new Set(await this.#mounts());
      return moment === 'mounting' ? !now.isSubsetOf(before) : !before.isSubsetOf(now);
    };
    // In some rounds the kill follows a later mount instead of the first one.
    for (let more = randomInt(this.#random, mountsOfPod); more >= 0; more--) {
      const came = await eventually(moment, async () => ((await isNow()) ? true : undefined), momentWithinMs)
        .then(() => true)
        .catch(() => false);
      if (!came) return;
      for (const point of await this.#mounts()) before.add(point);
    }
    this.#figures[moment]++;
  }

  async #kill(): Promise<void> {
    await this.#node.end('SIGKILL');
    this.#figures.kills++;
  }

  async #killDriver(): Promise<void> {
    await this.#driver.kill();
    this.#figures.driverKills++;
  }

  async #killAtStart(): Promise<void> {
    this.#node.launch();
    await pause(randomInt(this.#random, longestStartMs));
    await this.#kill();
    this.#figures.killsAtStart++;
  }

  /** Waits until the actual state is the desired one, without leftovers or duplicate mounts. */
  async #settle(): Promise<void> {
    const root = join(this.#node.dataDir, 'kubelet/pods');
    let last = '';
    const look = async () => {
      const expected = [...this.#wanted.values()].toSorted();
      const there = (await readdir(root)).toSorted();
      const mounts = await this.#mounts();
      const stray = mounts.filter(
        (point, index) => !isWanted(point, expected) || mounts.indexOf(point) !== index,
      );
      const ready = await Promise.all(expected.map((uid) => isReady(join(root, uid))));
      const staged = expected.length > 0 ? [] : await namesIn(this.#stagingDir());
      last = JSON.stringify({ wanted: expected, there, stray, staged, ready });
      const isLeft = there.join() !== expected.join() || stray.length > 0 || staged.length > 0;
      return !isLeft && ready.every(Boolean) ? true : undefined;
    };
    await eventually('the volumes to be as wanted', look, 180_000, () => last);
    assert.deepEqual(await this.#canaries.dead(), [], 'what is outside of the node must not be touched');
  }

  #stagingDir(): string {
    return join(this.#node.dataDir, 'kubelet/plugins/kubernetes.io/csi', driverName);
  }

  async #mounts(): Promise<readonly string[]> {
    const mounts = parseMountinfo(await readFile('/proc/self/mountinfo', 'utf8'));
    const root = `${this.#node.dataDir}/kubelet/`;
    return mounts.map(({ mountPoint }) => mountPoint).filter((point) => point.startsWith(root));
  }
}

/**
 * Whether the mount is expected: a CSI volume is staged for the node as long as any pod uses it.
 */
function isWanted(point: string, uids: readonly string[]): boolean {
  if (point.endsWith('/globalmount')) return uids.length > 0;
  return uids.some((uid) => point.includes(`/pods/${uid}/`));
}

/** Returns the names in a directory; none if the directory does not exist. */
async function namesIn(directory: string): Promise<readonly string[]> {
  return await readdir(directory).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
}

/** Whether the pod's container has successfully used all its volumes. */
async function isReady(podDir: string): Promise<boolean> {
  return await stat(join(podDir, 'volumes/kubernetes.io~empty-dir/disk/ok')).then(
    () => true,
    () => false,
  );
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
