import { posix } from 'node:path';
import type { Volume } from '../../kinds/index.ts';
import {
  type Clock,
  describeError,
  KeyedMutex,
  type Random,
  randomInt,
  YieldingCounter,
} from '../../lib/index.ts';
import type { PodObjects, TokenSource } from '../../objects/index.ts';
import type { Pod, PodUid, ResourceList } from '../../pods/index.ts';
import { removeVolumes } from '../files/remove-volumes.ts';
import type { VolumeFiles } from '../files/volume-files.ts';
import { prepareVolume } from '../manager/prepare-volume.ts';
import { type StorageObserver, timed, type VolumePlugin } from '../manager/volume-metrics.ts';
import { mapConcurrently } from '../manager/volume-operations.ts';
import { groupAccessOf, usedVolumes } from '../manager/volume-paths.ts';
import {
  dataLink,
  isComplete,
  isVisible,
  removeLeftovers,
  versionNameAt,
  writePayload,
} from './atomic-writer.ts';
import type { DownwardValues } from './downward-payload.ts';
import {
  checkedPayload,
  directoriesAbove,
  type Payload,
  PayloadBudget,
  payloadBytes,
  payloadDigest,
} from './payload.ts';
import { nestedMountPoints, type PayloadKind, PodVolumePaths, payloadKindOf } from './payload-paths.ts';
import { PayloadSources } from './payload-sources.ts';

export interface PayloadVolumesDeps {
  /** The directory that contains the pod directories. */
  readonly podsDir: string;
  /** The source of objects and tokens; undefined on a node without an API server. */
  readonly api:
    | {
        readonly objects: Pick<PodObjects, 'secret' | 'configMap'>;
        readonly tokens: Pick<TokenSource, 'get' | 'forgetPod'>;
      }
    | undefined;
  readonly downward: DownwardValues;
  readonly files: VolumeFiles;
  readonly clock: Clock;
  readonly random: Random;
  /** The allocatable memory of the node, which limits the size of each memory-backed volume. */
  readonly allocatable: () => ResourceList;
  /** Observes the durations of storage operations; they are not measured if undefined. */
  readonly observe?: StorageObserver | undefined;
}

/**
 * The location of a payload volume. It is mounted read-only: a container with write access could
 * redirect files of the host during a write.
 */
export interface PayloadVolume {
  readonly kind: 'path';
  readonly hostPath: string;
  readonly readOnly: true;
}

export interface VolumeProblem {
  readonly volume: string;
  /** The end of the event message: the description of the problem. */
  readonly message: string;
  /**
   * `earlier`: containers may start with the earlier content, which is complete but possibly stale.
   * `none`: containers may not start.
   */
  readonly content: 'none' | 'earlier';
}

/** A volume to write, and the remaining budget of its pod. */
interface FilledVolume {
  readonly volume: Volume;
  readonly kind: PayloadKind;
  readonly budget: PayloadBudget;
}

/**
 * The digest and the version that this process wrote last; while they are current, no file of the
 * volume has to be compared.
 */
interface WrittenVolume {
  readonly digest: string;
  readonly version: string;
  readonly retired: string | undefined;
}

const versionDigits = 2 ** 32;
/**
 * The number of files checked and hashed in one turn of the event loop; larger volumes are
 * processed over several turns.
 */
const stepsPerTurn = 1_024;
/** The number of bytes whose hashing takes about as long as checking one file. */
const bytesPerStep = 4_096;

/** Writes the payload volumes of pods: configMap, secret, downwardAPI and projected. */
export class PayloadVolumes {
  readonly #deps: PayloadVolumesDeps;
  readonly #sources: PayloadSources;
  readonly #lock = new KeyedMutex<PodUid>();
  readonly #written = new Map<PodUid, Map<string, WrittenVolume>>();
  readonly #turns = new YieldingCounter(stepsPerTurn);

  constructor(deps: PayloadVolumesDeps) {
    this.#deps = deps;
    this.#sources = new PayloadSources(deps);
  }

  /**
   * Returns the locations of the payload volumes, whether or not they exist; volumes of other types
   * are omitted.
   */
  of(pod: Pod): ReadonlyMap<string, PayloadVolume> {
    const paths = this.#paths(pod.metadata.uid);
    const found = new Map<string, PayloadVolume>();
    for (const volume of pod.spec.volumes ?? []) {
      const kind = payloadKindOf(volume);
      if (kind === undefined) continue;
      const hostPath = paths.volume(kind, volume.name);
      found.set(volume.name, { kind: 'path', hostPath, readOnly: true });
    }
    return found;
  }

  /**
   * Writes and refreshes the volumes that a container uses; called at each sync and cheap if
   * nothing has changed. Returns the problems in the order of the spec; rejects only when aborted.
   * `done` is called for each volume that was set up.
   */
  async prepare(
    pod: Pod,
    signal: AbortSignal,
    done: (volume: string) => void = () => {},
  ): Promise<readonly VolumeProblem[]> {
    const used = usedVolumes(pod);
    const filled = (pod.spec.volumes ?? []).flatMap((volume) => {
      const kind = payloadKindOf(volume);
      return kind !== undefined && used.has(volume.name) ? [{ volume, kind }] : [];
    });
    if (filled.length === 0) return [];
    using _held = await this.#lock.acquire(pod.metadata.uid, signal);
    const budget = PayloadBudget.ofPod();
    const problems = await mapConcurrently(filled, async ({ volume, kind }) => {
      const problem = await this.#try(pod, { volume, kind, budget }, signal);
      if (problem?.content !== 'none') done(volume.name);
      return problem;
    });
    return problems.filter((problem) => problem !== undefined);
  }

  /**
   * Removes the payload volumes of a pod. Call once no container of the pod runs; also for pods of
   * which only the UID is known. Idempotent. Rejects with VOLUME_REMOVE that names the paths that
   * are in use or were not created by this node.
   */
  async remove(uid: PodUid, signal: AbortSignal): Promise<void> {
    using _held = await this.#lock.acquire(uid, signal);
    this.#written.delete(uid);
    this.#deps.api?.tokens.forgetPod(uid);
    await removeVolumes(this.#deps, this.#paths(uid), signal);
  }

  async #try(
    pod: Pod,
    { volume, kind, budget }: FilledVolume,
    signal: AbortSignal,
  ): Promise<VolumeProblem | undefined> {
    const { clock, observe = () => {} } = this.#deps;
    try {
      await timed({ clock, observe }, 'volume_mount', [pluginOf(kind)], () =>
        this.#writeVolume(pod, { volume, kind, budget }, signal),
      );
      return undefined;
    } catch (error) {
      signal.throwIfAborted();
      const directory = this.#paths(pod.metadata.uid).volume(kind, volume.name);
      const content = (await isComplete(this.#deps.files, directory).catch(() => false)) ? 'earlier' : 'none';
      return { volume: volume.name, message: describeError(error), content };
    }
  }

  /**
   * The content is read before the volume is changed, so a missing source leaves existing content
   * alone.
   */
  async #writeVolume(pod: Pod, { volume, kind, budget }: FilledVolume, signal: AbortSignal): Promise<void> {
    const { name } = volume;
    const volumeBudget = budget.ofVolume();
    const found = await this.#sources.payloadOf(pod, volume, volumeBudget, signal);
    const payload = checkedPayload(found ?? new Map(), volumeBudget);
    const nested = nestedMountPoints(pod, name);
    directoriesAbove(
      nested.map((point) => `${point}/`),
      volumeBudget,
    );
    if (this.#turns.count(1 + payload.size + nested.length)) await this.#turns.yield();
    const digest = payloadDigest(payload, nested);
    if (this.#turns.count(payloadBytes(payload) / bytesPerStep)) await this.#turns.yield();
    const paths = this.#paths(pod.metadata.uid);
    if (await this.#isCurrent(pod, name, paths.volume(kind, name), { payload, digest })) return;
    const { files, allocatable } = this.#deps;
    const bytes = payloadBytes(payload);
    await prepareVolume(files, { pod, paths, kind, name, bytes, nested }, allocatable(), signal);
    await this.#write(pod, name, paths.volume(kind, name), { payload, digest, nested, kind });
  }

  async #write(
    pod: Pod,
    name: string,
    directory: string,
    {
      payload,
      digest,
      nested,
      kind,
    }: {
      readonly payload: Payload;
      readonly digest: string;
      readonly nested: readonly string[];
      readonly kind: PayloadKind;
    },
  ): Promise<void> {
    const { files, clock, random, observe = () => {} } = this.#deps;
    const target = {
      directory,
      group: pod.spec.securityContext?.fsGroup,
      access: groupAccessOf(pod),
      timed: (work: () => Promise<void>) =>
        timed({ clock, observe }, 'volume_apply_access_control', [pluginOf(kind)], work),
      nested,
      retired: this.#written.get(pod.metadata.uid)?.get(name)?.retired,
    };
    const newName = () => versionNameAt(clock.now(), randomInt(random, versionDigits));
    const written = await writePayload(files, target, payload, newName);
    this.#recordWritten(pod.metadata.uid, name, { digest, ...written });
  }

  /**
   * Whether the content is unchanged: the digest equals that of the last written version, this
   * version is still published, and none of the volume's links was removed.
   */
  async #isCurrent(
    pod: Pod,
    name: string,
    directory: string,
    { payload, digest }: { readonly payload: Payload; readonly digest: string },
  ): Promise<boolean> {
    const { uid } = pod.metadata;
    const written = this.#written.get(uid)?.get(name);
    if (written?.digest !== digest) return false;
    const { files } = this.#deps;
    if ((await files.readLink(posix.join(directory, dataLink))) !== written.version) return false;
    if (!(await isVisible(files, directory, payload))) return false;
    if (written.retired === undefined) return true;
    await removeLeftovers(files, { directory }, written.version);
    this.#recordWritten(uid, name, { ...written, retired: undefined });
    return true;
  }

  #recordWritten(uid: PodUid, name: string, written: WrittenVolume): void {
    const ofPod = this.#written.get(uid) ?? new Map<string, WrittenVolume>();
    this.#written.set(uid, ofPod.set(name, written));
  }

  #paths(uid: PodUid): PodVolumePaths {
    return new PodVolumePaths(this.#deps.podsDir, uid);
  }
}

/** Returns the plugin; the volume directory is named after it. */
function pluginOf({ directory }: PayloadKind): VolumePlugin {
  return { name: directory.replace('~', '/') };
}
