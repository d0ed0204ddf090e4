import type { NodeSelector, PersistentVolume, Volume } from '../../kinds/index.ts';
import { type Clock, describeError, isKind, KeyedMutex, KubelingError } from '../../lib/index.ts';
import type { BoundClaim, BoundClaims } from '../../objects/index.ts';
import { claimNameOf, type Pod, type PodJournal, type PodUid } from '../../pods/index.ts';
import type { BlockPlugin, BlockVolumes, MappedDevice } from '../block/block-volumes.ts';
import type { CsiBlock } from '../csi/csi-block.ts';
import { csiPlugin } from '../csi/csi-paths.ts';
import type { CsiVolumes } from '../csi/csi-volumes.ts';
import { type HostPathFiles, prepareHostPath } from '../hostpath/host-path.ts';
import { isMismatch } from '../local/format-and-mount.ts';
import { localExpansion, localKey } from '../local/local-disks.ts';
import type { GroupConflict, LocalVolumes } from '../local/local-volumes.ts';
import { atStage, stageError } from '../manager/mount-attempts.ts';
import { mapConcurrently } from '../manager/volume-operations.ts';
import { usedVolumes } from '../manager/volume-paths.ts';
import type { NfsVolumes } from '../nfs/nfs-volumes.ts';
import { unusable } from '../projected/payload.ts';
import type { ClaimVolume } from './bound-volume.ts';
import {
  asShared,
  type BoundVolume,
  boundVolume,
  type ClaimProblem,
  checkUse,
  csiVolume,
  isBlock,
  kindOfVolume,
  problemOf,
  sourceOf,
  type VolumeSource,
} from './bound-volume.ts';
import type { Expansions } from './expansions.ts';

/**
 * The PersistentVolumes bound for each pod, by the pod's volume names; persisted across restarts.
 */
export interface BoundVolumeRecords {
  of(uid: PodUid): Readonly<Record<string, BoundVolume>>;
  /**
   * Returns the bound volumes of all pods except the given one; of all pods when no pod is given.
   */
  ofOtherPods(uid: PodUid | undefined): readonly BoundVolume[];
  /**
   * Records bound volumes; takes effect immediately. Resolves when the write to disk has succeeded
   * or failed.
   */
  record(pod: Pod, volumes: Readonly<Record<string, BoundVolume>>): Promise<void>;
  forget(uid: PodUid): Promise<void>;
}

export interface ClaimVolumesDeps {
  /** Reads claims from the API server; undefined on a node without one. */
  readonly claims: Pick<BoundClaims, 'get' | 'forgetPod'> | undefined;
  /** Mounts local volumes; undefined on a platform without access to volume files. */
  readonly local: LocalVolumes | undefined;
  /** Mounts CSI volumes; undefined on a machine without CSI drivers. */
  readonly csi?: Pick<CsiVolumes, 'mountPathOf' | 'contextOf' | 'setUp' | 'maintain'> | undefined;
  /** Maps block volumes; undefined on a platform without access to block devices. */
  readonly block?: Pick<BlockVolumes, 'bindPathOf' | 'map' | 'remove'> | undefined;
  readonly csiBlock?: Pick<CsiBlock, 'setUp' | 'remove'> | undefined;
  /** Expands volumes; undefined to never expand them. */
  readonly expansions?: Pick<Expansions, 'atMount' | 'online' | 'forget'> | undefined;
  /** Mounts NFS volumes; undefined on a platform without NFS. */
  readonly nfs?: Pick<NfsVolumes, 'mountPathOf' | 'setUp'> | undefined;
  readonly hostFiles: HostPathFiles;
  /**
   * Matches the node affinity of a volume with this node; 'unknown' before the Node object was
   * received.
   */
  readonly matchNode: (required: NodeSelector) => 'this' | 'others' | 'unknown';
  readonly records: BoundVolumeRecords;
  readonly clock: Clock;
  readonly journal: Pick<PodJournal, 'event'>;
  /** Records an event on a PersistentVolume; undefined to drop such events. */
  readonly volumeEvent?: ReportVolumeEvent | undefined;
}

export type ReportVolumeEvent = (
  volume: { readonly name: string; readonly uid?: string | undefined },
  event: { readonly type: 'Warning'; readonly reason: string; readonly message: string },
) => void;

const soonMs = 1_000;

/** Mounts the PersistentVolumes that pods use by claims. */
export class ClaimVolumes {
  readonly #deps: ClaimVolumesDeps;
  readonly #lock = new KeyedMutex<PodUid>();
  readonly #expansionLock = new KeyedMutex<string>();
  /**
   * The volumes of each pod that this process has read from the API server. A claim stays bound to
   * its volume while a pod uses it.
   */
  readonly #confirmed = new Map<PodUid, Set<string>>();

  constructor(deps: ClaimVolumesDeps) {
    this.#deps = deps;
  }

  /** Returns the locations of the pod's claimed volumes whose PersistentVolume is already known. */
  of(pod: Pod): ReadonlyMap<string, ClaimVolume> {
    const found = new Map<string, ClaimVolume>();
    for (const volume of pod.spec.volumes ?? []) {
      const bound = this.#recorded(pod, volume);
      if (bound === undefined) continue;
      const { source, readOnly, name } = bound;
      const plugin = source.kind === 'csi' ? { plugin: csiPlugin(source) } : {};
      const devicePath = this.#deviceOf(pod.metadata.uid, bound);
      if (devicePath !== undefined) {
        found.set(volume.name, { kind: 'block', devicePath, readOnly, ...plugin });
        continue;
      }
      const hostPath = this.#pathOf(pod.metadata.uid, name, source);
      const relabel =
        source.kind !== 'hostPath' &&
        source.kind !== 'nfs' &&
        !readOnly &&
        !this.#isLabelled(pod, name, source);
      found.set(volume.name, { kind: 'path', hostPath, readOnly, relabel, specName: name, ...plugin });
    }
    return found;
  }

  /** Returns the supplementary groups that the volumes of the pod require. */
  groupsOf(uid: PodUid): readonly number[] {
    return Object.values(this.#deps.records.of(uid)).flatMap(({ group }) =>
      group === undefined ? [] : [group],
    );
  }

  /**
   * Mounts the claimed volumes that a container of the pod uses; idempotent. Returns the problems
   * in the order of the spec; rejects only when the signal is aborted. `done` is called immediately
   * for each mounted volume.
   */
  async prepare(
    pod: Pod,
    signal: AbortSignal,
    done: (volume: string) => void = () => {},
  ): Promise<readonly ClaimProblem[]> {
    return await this.#setUpAll(pod, claimed(pod), signal, done);
  }

  /**
   * Resolves the claims of a running pod whose volumes a previous kubelet mounted without recording
   * them.
   */
  async refresh(pod: Pod, signal: AbortSignal): Promise<void> {
    const unknown = claimed(pod).filter((volume) => this.#recorded(pod, volume) === undefined);
    await this.#setUpAll(pod, unknown, signal);
    for (const volume of claimed(pod)) {
      const recorded = this.#recorded(pod, volume);
      const bound = recorded && asShared(pod, recorded);
      if (bound?.source.kind === 'csi') this.#deps.csi?.maintain(pod, csiVolume(bound, bound.source));
      else if (bound !== undefined)
        await this.#expand(pod, bound, 'online', signal).catch(unlessAborted(signal));
    }
  }

  /**
   * Unmounts the pod's volumes once none of its containers runs; the UID is enough. Idempotent. The
   * content of the volumes is kept. Rejects with VOLUME_REMOVE, which names the paths still in use.
   */
  async remove(uid: PodUid, signal: AbortSignal): Promise<void> {
    using _held = await this.#lock.acquire(uid, signal);
    this.#deps.claims?.forgetPod(uid);
    await this.#deps.block?.remove(uid, signal);
    await this.#deps.csiBlock?.remove(uid, signal);
    await this.#deps.local?.remove(uid, signal);
    this.#confirmed.delete(uid);
    this.#forgetExpansions(uid);
    await this.#deps.records.forget(uid);
  }

  async #setUpAll(
    pod: Pod,
    volumes: readonly Volume[],
    signal: AbortSignal,
    done: (volume: string) => void = () => {},
  ): Promise<readonly ClaimProblem[]> {
    if (volumes.length === 0) return [];
    using _held = await this.#lock.acquire(pod.metadata.uid, signal);
    const problems = await mapConcurrently(volumes, async (volume) => {
      const problem = await this.#try(pod, volume, signal);
      if (problem === undefined) done(volume.name);
      return problem;
    });
    return problems.filter((problem) => problem !== undefined);
  }

  async #try(pod: Pod, volume: Volume, signal: AbortSignal): Promise<ClaimProblem | undefined> {
    try {
      const bound = await this.#resolve(pod, volume, signal);
      await this.#setUp(pod, volume, bound, signal);
      return undefined;
    } catch (error) {
      signal.throwIfAborted();
      return problemOf(volume.name, error);
    }
  }

  async #resolve(pod: Pod, volume: Volume, signal: AbortSignal): Promise<BoundVolume> {
    const recorded = this.#recorded(pod, volume);
    if (recorded !== undefined && this.#confirmed.get(pod.metadata.uid)?.has(volume.name) === true)
      return recorded;
    const claim = claimNameOf(pod, volume) ?? '';
    try {
      const found = await this.#boundClaim(pod, claim, signal);
      checkUse(pod, volume, found);
      return this.#check(volume, found);
    } catch (error) {
      // The recorded volume is used only while the API server is unreachable.
      if (recorded !== undefined && isKind(error, 'Unavailable')) return recorded;
      throw error;
    }
  }

  async #boundClaim(pod: Pod, claim: string, signal: AbortSignal): Promise<BoundClaim> {
    const { namespace, uid } = pod.metadata;
    const { claims } = this.#deps;
    const failed = `error processing PVC ${namespace}/${claim}`;
    if (claims === undefined) throw unusable(`${failed}: this node has no API server to ask for it`);
    return await claims.get({ namespace, name: claim }, uid, signal).catch((cause: unknown) => {
      signal.throwIfAborted();
      const code = isKind(cause, 'Unavailable') ? 'CLAIM_UNREAD' : 'CLAIM_UNBOUND';
      throw new KubelingError(code, `${failed}: ${describeError(cause)}`);
    });
  }

  /**
   * Checks the claim in the order of the Go kubelet, so that the same problem is reported first.
   */
  #check(volume: Volume, found: BoundClaim): BoundVolume {
    this.#checkNode(found.volume);
    const name = found.volume.metadata?.name ?? '';
    const source = sourceOf(found.volume);
    const kind = kindOfVolume(found.volume);
    if (isBlock(found.volume) && (source === undefined || this.#pluginOf(source) === undefined)) {
      const why = `volumes of the mode Block and the kind ${kind} are not supported by this node`;
      throw stageError('MapVolume.NewBlockVolumeMapper initialization failed', name, why);
    }
    if (source === undefined || !this.#canMount(source)) {
      const why = `volumes of the kind ${kind} are not supported by this node yet`;
      throw stageError('MountVolume.NewMounter initialization failed', name, why);
    }
    const bound = boundVolume(volume, found, source);
    if (source.kind === 'hostPath' && bound.mountOptions.length > 0) {
      const why = 'mount options are not supported for this volume type';
      throw stageError('MountVolume.MountOptionSupport check failed', name, why);
    }
    return bound;
  }

  #canMount({ kind }: VolumeSource): boolean {
    return kind === 'hostPath' || this.#deps[kind] !== undefined;
  }

  #checkNode({ metadata, spec }: PersistentVolume): void {
    const required = spec?.nodeAffinity?.required;
    const match = required === undefined ? 'this' : this.#deps.matchNode(required);
    if (match === 'this') return;
    const doing = spec?.volumeMode === 'Block' ? 'MapVolume' : 'MountVolume';
    const stage = `${doing}.NodeAffinity check failed`;
    const { name = '' } = metadata ?? {};
    if (match === 'others') throw stageError(stage, name, 'no matching NodeSelectorTerms');
    const retryAtMs = this.#deps.clock.monotonicMs() + soonMs;
    throw stageError(stage, name, 'the labels of this node are not known yet', retryAtMs);
  }

  /**
   * The volume is recorded before it is mounted, so that no other pod can get a ReadWriteOncePod
   * volume.
   */
  async #setUp(pod: Pod, volume: Volume, bound: BoundVolume, signal: AbortSignal): Promise<void> {
    const { records } = this.#deps;
    const { uid } = pod.metadata;
    const otherVolumes = records.ofOtherPods(uid);
    if (bound.use === 'one-pod' && otherVolumes.some(({ name }) => name === bound.name)) {
      const why = 'volume uses the ReadWriteOncePod access mode and is already in use by another pod';
      const stage = bound.mode === 'block' ? 'MapVolume.SetUpDevice failed' : 'MountVolume.SetUp failed';
      throw stageError(stage, bound.name, why);
    }
    const before = records.of(uid)[volume.name];
    const noting = records.record(pod, { ...records.of(uid), [volume.name]: bound });
    try {
      const shared = asShared(pod, bound);
      await this.#mount(pod, shared, otherVolumes, signal);
      const step = bound.mode === 'block' ? 'MapVolume.MarkVolumeAsMounted' : 'MountVolume.Setup';
      const stage = `${step} failed while expanding volume`;
      if (this.#confirmed.get(uid)?.has(volume.name) !== true)
        await atStage(stage, bound.name, this.#expand(pod, shared, 'atMount', signal));
      this.#confirmed.set(uid, (this.#confirmed.get(uid) ?? new Set()).add(volume.name));
    } catch (error) {
      const { [volume.name]: _failed, ...left } = records.of(uid);
      if (before === undefined) await records.record(pod, left);
      throw error;
    } finally {
      await noting;
    }
  }

  async #mount(
    pod: Pod,
    { source, ...bound }: BoundVolume,
    otherVolumes: readonly BoundVolume[],
    signal: AbortSignal,
  ): Promise<void> {
    if (bound.mode === 'block') {
      await this.#map(pod, bound, source, signal);
      return;
    }
    if (source.kind === 'hostPath') {
      await atStage('MountVolume.SetUp failed', bound.name, prepareHostPath(this.#deps.hostFiles, source));
      return;
    }
    if (source.kind === 'csi') {
      await this.#deps.csi?.setUp(pod, csiVolume(bound, source), signal);
      return;
    }
    const { local, nfs } = this.#deps;
    if (source.kind === 'nfs') {
      const volume = { ...bound, server: source.server, path: source.path };
      await atStage('MountVolume.SetUp failed', bound.name, nfs?.setUp(pod, volume, signal));
      return;
    }
    if (local === undefined) return;
    const volume = { ...bound, path: source.path, fsType: source.fsType };
    await atStage('MountVolume.NewMounter initialization failed', bound.name, local.find(volume));
    const isShared = otherVolumes.some(
      (other) => other.source.kind === 'local' && other.source.path === source.path,
    );
    const setUp = local.setUp(pod, volume, isShared ? 'shared' : 'first', signal).catch((error: unknown) => {
      if (isMismatch(error)) this.#reportMismatch(bound, error);
      throw error;
    });
    const conflict = await atStage('MountVolume.SetUp failed', bound.name, setUp);
    if (conflict !== undefined) this.#reportConflict(pod, bound.name, conflict);
  }

  async #map(
    pod: Pod,
    bound: Omit<BoundVolume, 'source'>,
    source: VolumeSource,
    signal: AbortSignal,
  ): Promise<void> {
    const { block, csiBlock } = this.#deps;
    const { name } = bound;
    const plugin = this.#pluginOf(source);
    if (plugin === undefined || block === undefined) return;
    const show = async (path: string) => {
      const mapped = await block.map(pod, { plugin, name, path }, signal);
      if (mapped.state === 'new') this.#reportMapped(pod, name, mapped);
    };
    if (source.kind === 'csi') await csiBlock?.setUp(pod, csiVolume(bound, source), show, signal);
    else if (source.kind === 'local') await show(source.path);
  }

  /**
   * Expands a volume that is not expanded by a CSI driver. Calls for two pods that share the volume
   * run serially; the second call finds the volume already expanded.
   */
  async #expand(
    pod: Pod,
    bound: BoundVolume,
    when: 'atMount' | 'online',
    signal: AbortSignal,
  ): Promise<void> {
    const { expansions, local } = this.#deps;
    if (bound.source.kind !== 'local' || expansions === undefined) return;
    const growing = localExpansion(local, bound, bound.source);
    await this.#expansionLock.run(growing.key, () => expansions[when](pod, growing, signal), signal);
  }

  /** Allows the next pod to retry an expansion that was reported as infeasible. */
  #forgetExpansions(uid: PodUid): void {
    const { records, expansions } = this.#deps;
    const referenced = new Set(records.ofOtherPods(uid).map(({ name }) => name));
    for (const { name, source } of Object.values(records.of(uid)))
      if (source.kind === 'local' && !referenced.has(name)) expansions?.forget(localKey(name));
  }

  #reportMapped(pod: Pod, name: string, { global, ofPod }: MappedDevice): void {
    for (const where of [`globalMapPath "${global}"`, `volumeMapPath "${ofPod}"`]) {
      const message = `MapVolume.MapPodDevice succeeded for volume "${name}" ${where}`;
      this.#deps.journal.event(pod, { type: 'Normal', reason: 'SuccessfulMountVolume', message });
    }
  }

  /** Returns the plugin name of volumes that can be mapped as devices; undefined for others. */
  #pluginOf({ kind }: VolumeSource): BlockPlugin | undefined {
    if (this.#deps.block === undefined) return undefined;
    if (kind === 'csi') return this.#deps.csiBlock === undefined ? undefined : 'csi';
    return kind === 'local' ? 'local-volume' : undefined;
  }

  #deviceOf(uid: PodUid, { mode, source, name }: BoundVolume): string | undefined {
    const plugin = mode === 'block' ? this.#pluginOf(source) : undefined;
    return plugin && this.#deps.block?.bindPathOf(uid, plugin, name);
  }

  #reportMismatch(volume: Omit<BoundVolume, 'source'>, error: unknown): void {
    const why = error instanceof KubelingError && error.cause !== undefined ? error.cause : error;
    const message = `MountVolume failed for volume "${volume.name}" : ${describeError(why)}`;
    const reason = 'FailedMountOnFilesystemMismatch';
    this.#deps.volumeEvent?.(volume, { type: 'Warning', reason, message });
  }

  #reportConflict(pod: Pod, volume: string, { requested, found }: GroupConflict): void {
    const message = `The requested fsGroup is ${requested}, but the volume ${volume} has GID ${found}. The volume may not be shareable.`;
    this.#deps.journal.event(pod, { type: 'Warning', reason: 'AlreadyMountedVolume', message });
  }

  /**
   * Returns the recorded volume if it has the same claim name; a record of another claim belongs to
   * an earlier pod with the same UID.
   */
  #recorded(pod: Pod, volume: Volume): BoundVolume | undefined {
    const claim = claimNameOf(pod, volume);
    const recorded = claim === undefined ? undefined : this.#deps.records.of(pod.metadata.uid)[volume.name];
    return recorded?.claim === claim ? recorded : undefined;
  }

  #isLabelled({ metadata: { uid } }: Pod, name: string, { kind }: VolumeSource): boolean {
    return kind === 'csi' && this.#deps.csi?.contextOf(uid, name) !== undefined;
  }

  #pathOf(uid: PodUid, name: string, source: VolumeSource): string {
    if (source.kind === 'hostPath') return source.path;
    return this.#deps[source.kind]?.mountPathOf(uid, name) ?? '';
  }
}

/** Whether the pod's volume is a persistentVolumeClaim or an ephemeral volume. */
export function isClaimed(volume: Volume): boolean {
  return volume.persistentVolumeClaim !== undefined || volume.ephemeral !== undefined;
}

/**
 * Returns an error handler that ignores an error which was already reported, because the next sync
 * of the pod retries; it throws when the signal is aborted.
 */
function unlessAborted(signal: AbortSignal): () => void {
  return () => signal.throwIfAborted();
}

function claimed(pod: Pod): readonly Volume[] {
  const used = usedVolumes(pod);
  return (pod.spec.volumes ?? []).filter((volume) => isClaimed(volume) && used.has(volume.name));
}
