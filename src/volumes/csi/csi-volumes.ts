import type { CSIDriver, Secret, Volume, VolumeAttachment } from '../../kinds/index.ts';
import {
  type Clock,
  describeError,
  HintLatch,
  KeyedBackoff,
  KeyedMutex,
  KubelingError,
  type Logger,
  type Random,
} from '../../lib/index.ts';
import type { TokenSource } from '../../objects/index.ts';
import { mayBePodUid, type Pod, type PodUid } from '../../pods/index.ts';
import { at } from '../failed-at.ts';
import { isGivenTo } from '../group-owner.ts';
import { unusable } from '../payload.ts';
import { firstThatIsNoDirectory } from '../payload-places.ts';
import { blocked } from '../remove-volumes.ts';
import type { VolumeFiles } from '../volume-files.ts';
import { attachmentOf, isWaiting } from './csi-attach.ts';
import type { CsiDriver, CsiDrivers } from './csi-drivers.ts';
import { isAbsent, isAway, isFinal } from './csi-failures.ts';
import { attachedName, attachmentName, CsiPlaces, type VolumePlace } from './csi-places.ts';
import { type CsiVolume, capabilityOf, groupFor, inlineVolume, podInfo } from './csi-request.ts';
import { checkMode, secretsFor, tokensFor } from './csi-wishes.ts';
import {
  podVolumeData,
  readVolumeData,
  stagedVolumeData,
  type VolumeData,
  volumesIn,
  writeVolumeData,
} from './volume-data.ts';

/** What the API says of drivers and volumes; undefined for what is not there. */
export interface CsiApi {
  driver(name: string, signal: AbortSignal): Promise<CSIDriver | undefined>;
  attachment(name: string, signal: AbortSignal): Promise<VolumeAttachment | undefined>;
  secret(namespace: string, name: string, signal: AbortSignal): Promise<Secret | undefined>;
  /** Whether the status of this node lists the volume among those that are attached. */
  isListed(volume: string, signal: AbortSignal): Promise<boolean>;
  readonly tokens: Pick<TokenSource, 'get'>;
}

export interface CsiVolumesDeps {
  readonly rootDir: string;
  readonly podsDir: string;
  readonly nodeName: string;
  readonly drivers: Pick<CsiDrivers, 'get'>;
  /** Undefined on a node without an API server. */
  readonly api: CsiApi | undefined;
  readonly files: VolumeFiles;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** Whether a pod other than this one is noted to have the volume. */
  readonly isNoted: (driver: string, handle: string, besides: PodUid | undefined) => boolean;
  /** Something the pod waits for has come. */
  readonly lookAgain: (uid: PodUid) => void;
  /** What `inUse` answers is another now. */
  readonly inUseChanged: () => void;
}

const directoryMode = 0o750;
const retry = { baseMs: 500, maxMs: 122_000 };
const sweepEveryMs = 60_000;
/** What a write that was cut off leaves. */
const leftover = /^\.kubeling-[0-9a-f]{16}\.tmp$/;

/*
 * A volume is staged once for the node, then published to each pod:
 *
 *   noted on disk ──> staged ──> noted in the pod's directory ──> published
 *                        ^                                            │ the pod is over
 *                        └── unstaged with its last pod <── unpublished
 *
 * Each note is written before the driver is asked and removed after it has undone it, so that whoever comes after a
 * crash finds all there may be. The content is the user's: nothing but empty directories is ever removed.
 */
/** Volumes that drivers in processes of their own mount for pods. */
export class CsiVolumes {
  readonly #deps: CsiVolumesDeps;
  readonly #places: CsiPlaces;
  /** One operation on a volume at a time. */
  readonly #lock = new KeyedMutex<string>();
  readonly #backoff: KeyedBackoff;
  /** Why the last attempt failed, and at which driver. */
  readonly #failed = new Map<string, { readonly error: KubelingError; readonly driver: string }>();
  readonly #waiting = new Map<string, Set<PodUid>>();
  /** What this process has done itself. */
  readonly #staged = new Set<string>();
  readonly #published = new Map<PodUid, Set<string>>();
  readonly #wanted = new Map<PodUid, Map<string, VolumeData>>();
  /** Volumes that the cluster must not take from this node. */
  readonly #inUse = new Set<string>();
  /** Whether those that earlier kubelets left are among them. */
  #stock: 'untaken' | 'taken' = 'untaken';
  readonly #untold = new Map<string, string>();
  readonly #sweeps: HintLatch;

  constructor(deps: CsiVolumesDeps) {
    this.#deps = deps;
    this.#places = new CsiPlaces(deps.rootDir, deps.podsDir);
    this.#backoff = new KeyedBackoff({ policy: retry, random: deps.random });
    this.#sweeps = new HintLatch(deps.clock);
  }

  /** How many pods wait for drivers. */
  get size(): number {
    return this.#waiting.size;
  }

  /** Where the pod is shown the volume. */
  placeOf(uid: PodUid, name: string): string {
    return this.#places.volume(uid, name).mount;
  }

  /** The names of all volumes that are to be attached here, sorted; undefined until all are known. */
  inUse(): readonly string[] | undefined {
    return this.#stock === 'taken' ? [...this.#inUse].toSorted() : undefined;
  }

  /** Whoever waits for the driver is looked at again. */
  arrived(driver: string): void {
    for (const [key, failed] of [...this.#failed]) {
      if (failed.driver === driver) this.#forget(key);
    }
    const waiting = this.#waiting.get(driver) ?? [];
    this.#waiting.delete(driver);
    for (const uid of waiting) this.#deps.lookAgain(uid);
    this.#sweeps.raise();
  }

  /** Shows the pod a volume it describes itself. May be repeated. */
  async setUpInline(pod: Pod, described: Volume, signal: AbortSignal): Promise<void> {
    const volume = inlineVolume(pod, described);
    if (volume === undefined) return;
    await this.#setUp(pod, volume, (inner) => this.#publish(pod, volume, {}, inner), signal);
  }

  /** Shows the pod a PersistentVolume, which is made ready for the node before. May be repeated. */
  async setUp(pod: Pod, volume: CsiVolume, signal: AbortSignal): Promise<void> {
    const work = async (inner: AbortSignal) => {
      const context = await this.#attach(volume, inner);
      await at('MountVolume.MountDevice failed', volume.name, this.#stage(pod, volume, context, inner));
      await at('MountVolume.SetUp failed', volume.name, this.#publish(pod, volume, context, inner));
    };
    await this.#setUp(pod, volume, work, signal);
  }

  /** As `republish`, for a volume that the pod describes itself. */
  async republishInline(pod: Pod, described: Volume, signal: AbortSignal): Promise<void> {
    const volume = inlineVolume(pod, described);
    if (volume !== undefined) await this.republish(pod, volume, signal);
  }

  /** Has a driver that wants so publish the volume again to a pod that runs. What is there stays if it cannot. */
  async republish(pod: Pod, volume: CsiVolume, signal: AbortSignal): Promise<void> {
    const driver = await this.#deps.api?.driver(volume.driver, signal);
    if (driver?.spec.requiresRepublish !== true) return;
    using _held = await this.#lock.acquire(keyOf(volume), signal);
    const context = volume.mode === 'Persistent' ? await this.#attach(volume, signal) : {};
    await this.#publish(pod, volume, context, signal);
  }

  /**
   * To be called once nothing of the pod runs, also for pods of which nothing but the UID is known; may be repeated.
   * Rejects with VOLUME_REMOVE, naming the drivers and paths, for what cannot be taken away.
   */
  async remove(uid: PodUid, signal: AbortSignal): Promise<void> {
    const { files } = this.#deps;
    // Behind a link they are somebody else's.
    if ((await firstThatIsNoDirectory(files, this.#places.waysTo(uid))) !== undefined) return;
    const directory = this.#places.ofPod(uid);
    const problems: string[] = [];
    for (const { place, data } of await volumesIn(files, directory, 'mount')) {
      await this.#takeAway(uid, place, data, signal).catch((error: unknown) => {
        signal.throwIfAborted();
        problems.push(describeError(error));
      });
    }
    for (const pods of this.#waiting.values()) pods.delete(uid);
    for (const key of [...this.#failed.keys()]) if (key.startsWith(`${uid}/`)) this.#forget(key);
    if (problems.length > 0) throw blocked(problems);
    await files.removeEmptyDirectory(directory);
    this.#published.delete(uid);
    // What was attached or staged for it and never published has nothing in its directory.
    const wanted = [...(this.#wanted.get(uid)?.values() ?? [])];
    this.#wanted.delete(uid);
    for (const data of wanted) if (data.mode === 'Persistent') await this.#unstage(data, uid, signal);
  }

  /** Unstages what no pod has any more, also what earlier kubelets have left. */
  async run(signal: AbortSignal): Promise<void> {
    await this.#takeStock();
    this.#deps.inUseChanged();
    for (;;) {
      await this.#sweeps.wait(sweepEveryMs, signal);
      this.#sweeps.clear();
      await this.#sweep(signal);
    }
  }

  async #setUp(
    pod: Pod,
    volume: CsiVolume,
    work: (signal: AbortSignal) => Promise<void>,
    signal: AbortSignal,
  ): Promise<void> {
    const { uid } = pod.metadata;
    const key = keyOf(volume);
    if (this.#published.get(uid)?.has(key) === true) return;
    const attempt = `${uid}/${volume.name}`;
    this.#refuseTooSoon(attempt);
    const { driver, handle, mode } = volume;
    this.#wanted.set(uid, (this.#wanted.get(uid) ?? new Map()).set(key, { driver, handle, mode }));
    using _held = await this.#lock.acquire(key, signal);
    try {
      await work(signal).catch((error: unknown) => this.#unlessThere(uid, volume, error, signal));
      this.#published.set(uid, (this.#published.get(uid) ?? new Set()).add(key));
      this.#forget(attempt);
    } catch (error) {
      signal.throwIfAborted();
      throw this.#noted(attempt, uid, volume.driver, error);
    }
  }

  /** A volume that an earlier kubelet has published need not wait for a driver or an API that is away. */
  async #unlessThere(uid: PodUid, volume: CsiVolume, error: unknown, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const place = this.#places.volume(uid, volume.name);
    const data = await readVolumeData(this.#deps.files, place);
    const isDone = isSound(data) && data.state === 'published' && keyOf(data) === keyOf(volume);
    if (!isAway(error) || !isDone || (await this.#deps.files.mountAt(place.mount)) === 'none') throw error;
  }

  #refuseTooSoon(attempt: string): void {
    const { clock } = this.#deps;
    const failed = this.#failed.get(attempt);
    if (failed !== undefined && this.#backoff.waitMs(attempt, { nowMs: clock.monotonicMs() }) > 0)
      throw failed.error;
  }

  /** The error with the time from which it is tried again. */
  #noted(attempt: string, uid: PodUid, driver: string, error: unknown): unknown {
    if (isWaiting(error)) return error;
    if (isAbsent(error)) {
      this.#waiting.set(driver, (this.#waiting.get(driver) ?? new Set()).add(uid));
      return error;
    }
    const nowMs = this.#deps.clock.monotonicMs();
    const retryAtMs = nowMs + this.#backoff.fail(attempt, { nowMs });
    const details = { ...(error instanceof KubelingError ? error.details : {}), retryAtMs };
    const told = new KubelingError('VOLUME_UNUSABLE', describeError(error), { details });
    this.#failed.set(attempt, { error: told, driver });
    return told;
  }

  #forget(attempt: string): void {
    this.#failed.delete(attempt);
    this.#backoff.forget(attempt);
  }

  async #attach(volume: CsiVolume, signal: AbortSignal): Promise<Readonly<Record<string, string>>> {
    const { api, clock, nodeName } = this.#deps;
    if (api === undefined) return {};
    const spec = await at('MountVolume.WaitForAttach failed', volume.name, api.driver(volume.driver, signal));
    const name = attachedName(volume.driver, volume.handle);
    if (spec?.spec.attachRequired === false) {
      this.#changeInUse(() => this.#inUse.delete(name));
      return {};
    }
    this.#changeInUse(() => this.#inUse.size !== this.#inUse.add(name).size);
    return await attachmentOf({ api, clock, nodeName }, volume, signal);
  }

  #changeInUse(change: () => boolean): void {
    if (change()) this.#deps.inUseChanged();
  }

  async #stage(
    pod: Pod,
    volume: CsiVolume,
    publishContext: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<void> {
    const { files } = this.#deps;
    const key = keyOf(volume);
    const driver = this.#driver('attacher.MountDevice failed to create newCsiDriverClient', volume);
    if (this.#staged.has(key) || !driver.can.has('STAGE_UNSTAGE_VOLUME')) return;
    const secrets = await secretsFor(this.#deps.api, 'NodeStageSecretRef', volume.stageSecret, signal);
    const place = this.#places.stagedVolume(volume.driver, volume.handle);
    const before = await readVolumeData(files, place);
    await files.makeDirectory(place.directory, directoryMode);
    // Over a mount nothing is made and nothing changed.
    if ((await files.mountAt(place.mount)) === 'none') await files.makeDirectory(place.mount, directoryMode);
    await writeVolumeData(files, place, stagedVolumeData(volume));
    const request = {
      volumeId: volume.handle,
      publishContext,
      stagingTargetPath: place.mount,
      volumeCapability: capabilityOf(volume, driver.can, pod),
      secrets,
      volumeContext: volume.attributes,
    };
    await driver.client.stage(request, signal).catch(async (error: unknown) => {
      if (isFinal(error) && before === undefined) await this.#clean(place, volume.driver);
      throw error;
    });
    this.#staged.add(key);
  }

  async #publish(
    pod: Pod,
    volume: CsiVolume,
    publishContext: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<void> {
    const { files, api, nodeName } = this.#deps;
    const { uid } = pod.metadata;
    const driver = this.#driver('mounter.SetUpAt failed to get CSI client', volume);
    const spec = await api?.driver(volume.driver, signal);
    if (api !== undefined) checkMode(volume, spec);
    const secrets = await secretsFor(this.#deps.api, 'NodePublishSecretRef', volume.publishSecret, signal);
    const tokens = await tokensFor(api, pod, spec, signal);
    const isSecret = spec?.spec.serviceAccountTokenInSecrets === true;
    const info = spec?.spec.podInfoOnMount === true ? podInfo(pod, volume.mode) : {};
    const place = await this.#makePlace(uid, volume.name);
    const before = await readVolumeData(files, place);
    const attachment = attachmentName(volume.handle, volume.driver, nodeName);
    const note = (state: 'asked' | 'published') =>
      writeVolumeData(files, place, podVolumeData({ ...volume, state }, volume.name, nodeName, attachment));
    await note('asked');
    const isStaged = volume.mode === 'Persistent' && driver.can.has('STAGE_UNSTAGE_VOLUME');
    const request = {
      volumeId: volume.handle,
      publishContext,
      stagingTargetPath: isStaged ? this.#places.stagedVolume(volume.driver, volume.handle).mount : '',
      targetPath: place.mount,
      volumeCapability: capabilityOf(volume, driver.can, pod),
      readonly: volume.readOnly,
      secrets: isSecret ? { ...secrets, ...tokens } : secrets,
      volumeContext: { ...volume.attributes, ...info, ...(isSecret ? {} : tokens) },
    };
    await driver.client.publish(request, signal).catch(async (error: unknown) => {
      if (isFinal(error) && before === undefined) await this.#clean(place, volume.driver);
      throw error;
    });
    await this.#giveToGroup(pod, place, groupFor(pod, volume, driver.can, spec));
    await note('published');
  }

  async #makePlace(uid: PodUid, name: string): Promise<VolumePlace> {
    const { files } = this.#deps;
    const place = this.#places.volume(uid, name);
    const foreign = await firstThatIsNoDirectory(files, [...this.#places.waysTo(uid), place.directory]);
    if (foreign !== undefined) throw unusable(`${foreign} is no directory`);
    await files.makeDirectory(place.directory, directoryMode);
    return place;
  }

  async #giveToGroup({ spec }: Pod, { mount }: VolumePlace, group: number | undefined): Promise<void> {
    const { files } = this.#deps;
    if (group === undefined) return;
    const isOnce = spec.securityContext?.fsGroupChangePolicy === 'OnRootMismatch';
    if (isOnce && isGivenTo(group, await files.ownerOf(mount))) return;
    await files.giveToGroup(mount, group, 'write');
  }

  #driver(what: string, { driver }: Pick<CsiVolume, 'driver'>): CsiDriver {
    try {
      return this.#deps.drivers.get(driver);
    } catch (error) {
      throw new KubelingError('CSI_ABSENT', `kubernetes.io/csi: ${what}: ${describeError(error)}`);
    }
  }

  async #takeAway(
    uid: PodUid,
    place: VolumePlace,
    data: VolumeData | 'damaged' | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    if (data === undefined || data === 'damaged') {
      await this.#clean(place, undefined);
      return;
    }
    using _held = await this.#lock.acquire(keyOf(data), signal);
    const what = `the volume ${data.handle} of the CSI driver ${data.driver} at ${place.mount}`;
    try {
      const { client } = this.#driver('Unmounter.TearDownAt failed to get CSI client', data);
      await client.unpublish(data.handle, place.mount, signal);
    } catch (error) {
      signal.throwIfAborted();
      throw unusable(`${what} cannot be unpublished: ${describeError(error)}`);
    }
    await this.#clean(place, data.driver);
    this.#published.get(uid)?.delete(keyOf(data));
    // What this process does not know of was mounted by an earlier one.
    this.#wanted.set(uid, (this.#wanted.get(uid) ?? new Map()).set(keyOf(data), data));
  }

  /** Fails nobody: the pod has no part in it any more. */
  async #unstage(data: VolumeData, gone: PodUid | undefined, signal: AbortSignal): Promise<void> {
    using _held = await this.#lock.acquire(keyOf(data), signal);
    await this.#unstageUnused(data, gone, signal).catch((error: unknown) => {
      signal.throwIfAborted();
      this.#tellUnstaged(data, error);
    });
  }

  /** With the lock of the volume held. */
  async #unstageUnused(data: VolumeData, gone: PodUid | undefined, signal: AbortSignal): Promise<void> {
    const { files } = this.#deps;
    if (await this.#isUsed(data, gone)) return;
    const place = this.#places.stagedVolume(data.driver, data.handle);
    if ((await readVolumeData(files, place)) !== undefined) {
      const driver = this.#driver('attacher.UnmountDevice failed to create newCsiDriverClient', data);
      this.#staged.delete(keyOf(data));
      if (driver.can.has('STAGE_UNSTAGE_VOLUME'))
        await driver.client.unstage(data.handle, place.mount, signal);
      await this.#clean(place, data.driver);
    }
    this.#untold.delete(keyOf(data));
    this.#changeInUse(() => this.#inUse.delete(attachedName(data.driver, data.handle)));
  }

  async #isUsed(data: VolumeData, gone: PodUid | undefined): Promise<boolean> {
    const { files, podsDir, isNoted } = this.#deps;
    const key = keyOf(data);
    for (const [uid, keys] of this.#wanted) if (uid !== gone && keys.has(key)) return true;
    if (isNoted(data.driver, data.handle, gone)) return true;
    const pods = (await files.names(podsDir)).filter(mayBePodUid).filter((uid) => uid !== gone);
    for (const uid of pods) {
      const volumes = await volumesIn(files, this.#places.ofPod(uid), 'mount');
      if (volumes.some((volume) => isSound(volume.data) && keyOf(volume.data) === key)) return true;
    }
    return false;
  }

  /** Takes away what was made here, and nothing else: what is not empty stays, and so does what is mounted. */
  async #clean(place: VolumePlace, driver: string | undefined): Promise<void> {
    const { files } = this.#deps;
    const whose = driver === undefined ? 'and nothing says by which driver' : `by the CSI driver ${driver}`;
    if ((await files.mountAt(place.mount)) !== 'none')
      throw blocked([`${place.mount} is still mounted, ${whose}`]);
    if ((await files.removeEmptyDirectory(place.mount)) === 'not-empty')
      throw blocked([`${place.mount} has content, put there ${whose}`]);
    await files.unlink(place.data);
    for (const name of await files.names(place.directory))
      if (leftover.test(name)) await files.unlink(`${place.directory}/${name}`);
    if ((await files.removeEmptyDirectory(place.directory)) === 'not-empty')
      throw blocked([`${place.directory} has content that was not put there by this node`]);
  }

  async #takeStock(): Promise<void> {
    const { files, podsDir } = this.#deps;
    const add = (data: VolumeData | 'damaged' | undefined) => {
      if (isSound(data) && data.mode === 'Persistent')
        this.#inUse.add(attachedName(data.driver, data.handle));
    };
    for (const uid of (await files.names(podsDir)).filter(mayBePodUid))
      for (const { data } of await volumesIn(files, this.#places.ofPod(uid), 'mount')) add(data);
    for (const { data } of await this.#allStaged()) add(data);
    this.#stock = 'taken';
  }

  async #allStaged() {
    const { files } = this.#deps;
    const drivers = await files.names(this.#places.staged);
    const found = await Promise.all(
      drivers.map((driver) => volumesIn(files, `${this.#places.staged}/${driver}`, 'globalmount')),
    );
    return found.flat();
  }

  async #sweep(signal: AbortSignal): Promise<void> {
    for (const { data } of await this.#allStaged()) {
      if (isSound(data) && !this.#lock.isHeld(keyOf(data))) await this.#unstage(data, undefined, signal);
    }
  }

  /** Once for each reason; the sweeps go on. */
  #tellUnstaged(data: VolumeData, error: unknown): void {
    const why = describeError(error);
    if (this.#untold.get(keyOf(data)) === why) return;
    this.#untold.set(keyOf(data), why);
    const { driver, handle } = data;
    this.#deps.logger.warn('A volume cannot be unstaged, it is tried again', {
      driver,
      handle,
      because: why,
    });
  }
}

function keyOf({ driver, handle }: Pick<VolumeData, 'driver' | 'handle'>): string {
  return `${driver}^${handle}`;
}

function isSound(data: VolumeData | 'damaged' | undefined): data is VolumeData {
  return data !== undefined && data !== 'damaged';
}
