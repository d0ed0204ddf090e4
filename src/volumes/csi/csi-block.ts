import { posix } from 'node:path';
import { describeError, KeyedMutex, KubelingError } from '../../lib/index.ts';
import type { Pod, PodUid } from '../../pods/index.ts';
import { at, failedAt } from '../failed-at.ts';
import { checkedName } from '../payload-places.ts';
import { blocked } from '../remove-volumes.ts';
import type { VolumeFiles } from '../volume-files.ts';
import type { CsiAttempts } from './csi-attempts.ts';
import type { CsiDriver, CsiDrivers } from './csi-drivers.ts';
import { attachmentName, type CsiPlaces } from './csi-places.ts';
import { type CsiVolume, capabilityOf, podInfo } from './csi-request.ts';
import type { CsiApi } from './csi-volumes.ts';
import { secretsFor, tokensFor } from './csi-wishes.ts';

export interface CsiBlockDeps {
  readonly places: Pick<CsiPlaces, 'devices'>;
  readonly nodeName: string;
  readonly drivers: Pick<CsiDrivers, 'get'>;
  /** Undefined on a node without an API server. */
  readonly api: CsiApi | undefined;
  readonly files: Pick<
    VolumeFiles,
    'kindAt' | 'names' | 'readFile' | 'replaceFile' | 'makeDirectory' | 'removeEmptyDirectory' | 'unlink'
  >;
  readonly attempts: Pick<CsiAttempts, 'run'>;
  /** Waits until the volume is attached; answers what its attachment says. */
  readonly attach: (volume: CsiVolume, signal: AbortSignal) => Promise<Readonly<Record<string, string>>>;
  /** The cluster may take the volume from this node. */
  readonly release: (volume: BlockData) => void;
}

/** What must be known of a volume to take it away, whoever has asked for it. */
export interface BlockData {
  readonly driver: string;
  readonly handle: string;
}

const directoryMode = 0o750;
const fileMode = 0o644;
/** Beside the volumes, which cannot be called so as long as nobody calls a volume so. */
const stagingName = 'staging';
const publishName = 'publish';

/*
 * A volume is noted, staged once for the node, and published to each pod at a file:
 *
 *   <volume>/data/vol_data.json ──> staging/<volume> ──> publish/<volume>/<pod>
 *
 * and back in reverse, with the last pod all of it.
 */
/** Volumes that drivers in processes of their own make devices for. */
export class CsiBlock {
  readonly #deps: CsiBlockDeps;
  readonly #base: string;
  /** One operation on a volume at a time. */
  readonly #lock = new KeyedMutex<string>();
  /** What this process has had staged and published itself. */
  readonly #staged = new Set<string>();
  readonly #published = new Map<PodUid, Set<string>>();
  /** What pods wait for or have. */
  readonly #wanted = new Map<PodUid, Set<string>>();

  constructor(deps: CsiBlockDeps) {
    this.#deps = deps;
    this.#base = deps.places.devices;
  }

  /** All volumes that may be here, also those of earlier kubelets. */
  async known(): Promise<readonly BlockData[]> {
    const found = await Promise.all((await this.#names()).map((name) => this.#read(name)));
    return found.filter((data) => data !== undefined);
  }

  /** Has the driver make the device; answers where. May be repeated. Rejects with the stage that failed. */
  async setUp(pod: Pod, volume: CsiVolume, signal: AbortSignal): Promise<string> {
    const { uid } = pod.metadata;
    const name = checkedVolume(volume.name);
    const target = posix.join(this.#base, publishName, name, uid);
    const work = async () => {
      using _held = await this.#lock.acquire(name, signal);
      if (this.#published.get(uid)?.has(name) === true) return;
      this.#wanted.set(uid, (this.#wanted.get(uid) ?? new Set()).add(name));
      await at('MapVolume.SetUpDevice failed', name, this.#write(volume));
      const context = await asMapping(this.#deps.attach(volume, signal));
      await at('MapVolume.SetUpDevice failed', name, this.#stage(pod, volume, context, signal));
      await at('MapVolume.MapPodDevice failed', name, this.#publish(pod, volume, context, target, signal));
      this.#published.set(uid, (this.#published.get(uid) ?? new Set()).add(name));
    };
    await this.#deps.attempts.run(uid, volume, work, signal);
    return target;
  }

  /**
   * To be called once nothing shows the devices of the pod any more; may be repeated. Volumes that no pod has are unstaged,
   * too. Rejects with VOLUME_REMOVE, naming the drivers, for what cannot be taken away.
   */
  async remove(uid: PodUid, signal: AbortSignal): Promise<void> {
    const problems: string[] = [];
    this.#wanted.delete(uid);
    for (const name of await this.#names()) {
      using _held = await this.#lock.acquire(name, signal);
      await this.#removeOne(uid, name, signal).catch((error: unknown) => {
        signal.throwIfAborted();
        problems.push(describeError(error));
      });
    }
    if (problems.length > 0) throw blocked(problems);
    this.#published.delete(uid);
  }

  async #stage(
    pod: Pod,
    volume: CsiVolume,
    publishContext: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<void> {
    const { files, api } = this.#deps;
    const driver = this.#driver(volume);
    if (this.#staged.has(volume.name) || !driver.can.has('STAGE_UNSTAGE_VOLUME')) return;
    const secrets = await secretsFor(api, 'NodeStageSecretRef', volume.stageSecret, signal);
    const stagingTargetPath = this.#staging(volume.name);
    await files.makeDirectory(stagingTargetPath, directoryMode);
    const request = {
      volumeId: volume.handle,
      publishContext,
      stagingTargetPath,
      volumeCapability: asDevice(pod, volume, driver),
      secrets,
      volumeContext: volume.attributes,
    };
    await driver.client.stage(request, signal);
    this.#staged.add(volume.name);
  }

  async #publish(
    pod: Pod,
    volume: CsiVolume,
    publishContext: Readonly<Record<string, string>>,
    targetPath: string,
    signal: AbortSignal,
  ): Promise<void> {
    const { files, api } = this.#deps;
    const driver = this.#driver(volume);
    const spec = await api?.driver(volume.driver, signal);
    const secrets = await secretsFor(api, 'NodePublishSecretRef', volume.publishSecret, signal);
    const tokens = await tokensFor(api, pod, spec, signal);
    const isSecret = spec?.spec.serviceAccountTokenInSecrets === true;
    const info = spec?.spec.podInfoOnMount === true ? podInfo(pod, volume.mode) : {};
    await files.makeDirectory(posix.dirname(targetPath), directoryMode);
    const isStaged = driver.can.has('STAGE_UNSTAGE_VOLUME');
    const request = {
      volumeId: volume.handle,
      publishContext,
      stagingTargetPath: isStaged ? this.#staging(volume.name) : '',
      targetPath,
      volumeCapability: asDevice(pod, volume, driver),
      readonly: volume.readOnly,
      secrets: isSecret ? { ...secrets, ...tokens } : secrets,
      volumeContext: { ...volume.attributes, ...info, ...(isSecret ? {} : tokens) },
    };
    await driver.client.publish(request, signal);
  }

  /** With the lock of the volume held. A pod that was never published to is unpublished all the same: nobody knows. */
  async #removeOne(uid: PodUid, name: string, signal: AbortSignal): Promise<void> {
    const { files } = this.#deps;
    const data = await this.#read(name);
    const published = posix.join(this.#base, publishName, name);
    const pods = await files.names(published);
    if (data === undefined) return;
    const what = `the volume ${data.handle} of the CSI driver ${data.driver}`;
    if (pods.includes(uid) || this.#published.get(uid)?.has(name) === true) {
      const target = posix.join(published, uid);
      await told(`${what} cannot be unpublished`, () =>
        this.#driver(data).client.unpublish(data.handle, target, signal),
      );
      // What it has left of its own is not ours to take.
      if ((await files.kindAt(target)) === 'file') await files.unlink(target);
      this.#published.get(uid)?.delete(name);
    }
    const isWanted = [...this.#wanted.values()].some((names) => names.has(name));
    const isUsed = pods.some((other) => other !== uid) || isWanted;
    if (isUsed || (await files.names(posix.join(this.#base, name, 'dev'))).length > 0) return;
    await told(`${what} cannot be unstaged`, () => this.#unstage(name, data, signal));
    this.#deps.release(data);
  }

  async #unstage(name: string, data: BlockData, signal: AbortSignal): Promise<void> {
    const { files } = this.#deps;
    const staging = this.#staging(name);
    // Without it no driver was asked yet.
    if ((await files.kindAt(staging)) !== undefined) {
      const { client, can } = this.#driver(data);
      this.#staged.delete(name);
      if (can.has('STAGE_UNSTAGE_VOLUME')) await client.unstage(data.handle, staging, signal);
    }
    const own = posix.join(this.#base, name);
    for (const directory of [staging, posix.join(this.#base, publishName, name), posix.join(own, 'dev')])
      await removeEmpty(files, directory);
    // Last: without it nobody knows whose it is.
    await files.unlink(this.#data(name));
    for (const directory of [posix.join(own, 'data'), own]) await removeEmpty(files, directory);
  }

  #driver({ driver }: Pick<BlockData, 'driver'>): CsiDriver {
    try {
      return this.#deps.drivers.get(driver);
    } catch (error) {
      const message = `kubernetes.io/csi: blockMapper failed to get CSI client: ${describeError(error)}`;
      throw new KubelingError('CSI_ABSENT', message);
    }
  }

  async #names(): Promise<readonly string[]> {
    const names = await this.#deps.files.names(this.#base);
    return names.filter((name) => name !== stagingName && name !== publishName);
  }

  #staging(name: string): string {
    return posix.join(this.#base, stagingName, name);
  }

  #data(name: string): string {
    return posix.join(this.#base, name, 'data/vol_data.json');
  }

  async #write({ name, driver, handle }: CsiVolume): Promise<void> {
    const { files, nodeName } = this.#deps;
    const attachmentID = attachmentName(handle, driver, nodeName);
    const text = JSON.stringify({
      attachmentID,
      driverName: driver,
      nodeName,
      specVolID: name,
      volumeHandle: handle,
    });
    await files.makeDirectory(posix.dirname(this.#data(name)), directoryMode);
    await files.replaceFile(this.#data(name), Buffer.from(`${text}\n`), fileMode);
  }

  async #read(name: string): Promise<BlockData | undefined> {
    const text = await this.#deps.files.readFile(this.#data(name));
    try {
      const { driverName: driver, volumeHandle: handle } = JSON.parse(text?.toString('utf8') ?? '{}');
      const isSound = [driver, handle].every((value) => typeof value === 'string' && value !== '');
      return isSound ? { driver, handle } : undefined;
    } catch {
      return undefined;
    }
  }
}

function checkedVolume(name: string): string {
  if ([stagingName, publishName].includes(name))
    throw failedAt('MapVolume.SetUpDevice failed', name, 'no volume of the mode Block can be called so');
  return checkedName(name);
}

function asDevice(pod: Pod, volume: CsiVolume, driver: CsiDriver) {
  const { accessMode } = capabilityOf(volume, driver.can, pod);
  return { block: {}, mount: undefined, accessMode };
}

/** What is waited for is a device, not a mount. */
async function asMapping<T>(work: Promise<T>): Promise<T> {
  return await work.catch((error: unknown) => {
    if (!(error instanceof KubelingError) || typeof error.details['stage'] !== 'string') throw error;
    const details = { ...error.details, stage: error.details['stage'].replace(/^MountVolume/, 'MapVolume') };
    const message = error.message.replace(/^MountVolume/, 'MapVolume');
    throw new KubelingError(error.code, message, { details, cause: error });
  });
}

async function told(what: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    throw blocked([`${what}: ${describeError(error)}`]);
  }
}

async function removeEmpty(files: CsiBlockDeps['files'], directory: string): Promise<void> {
  if ((await files.removeEmptyDirectory(directory)) === 'not-empty')
    throw blocked([`${directory} has content that was not put there by this node`]);
}
