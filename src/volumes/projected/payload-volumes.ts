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
  isVisible,
  isWhole,
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
  /** Where the directories of pods are. */
  readonly podsDir: string;
  /** Where objects and tokens come from; undefined on a node without an API server. */
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
  /** What the node has to give: no volume in memory may grow larger. */
  readonly allocatable: () => ResourceList;
  /** How long it takes is told nobody unless given. */
  readonly observe?: StorageObserver | undefined;
}

/** Where a volume is to be found. Whoever could write there could change files of the machine while they are written. */
export interface PayloadVolume {
  readonly kind: 'path';
  readonly hostPath: string;
  readonly readOnly: true;
}

export interface VolumeProblem {
  readonly volume: string;
  /** What went wrong, as its event ends. */
  readonly message: string;
  /** With `earlier` content, whole though perhaps not the newest, containers may go on and start; with `none` they may not. */
  readonly content: 'none' | 'earlier';
}

/** A volume to fill, and what all such volumes of its pod may still take. */
interface FilledVolume {
  readonly volume: Volume;
  readonly kind: PayloadKind;
  readonly budget: PayloadBudget;
}

/** What this process knows it has made, so that it need not be looked at file by file. */
interface Made {
  readonly digest: string;
  readonly version: string;
  readonly retired: string | undefined;
}

const versionDigits = 2 ** 32;
/** Files that are checked and hashed in one turn of the event loop, if no volume has more. */
const stepsPerTurn = 1_024;
/** Hashing so many bytes takes as long as one file. */
const bytesPerStep = 4_096;

/** The volumes of pods that are filled from here: config maps, secrets, facts about the pod, and several of them in one. */
export class PayloadVolumes {
  readonly #deps: PayloadVolumesDeps;
  readonly #sources: PayloadSources;
  readonly #lock = new KeyedMutex<PodUid>();
  readonly #written = new Map<PodUid, Map<string, Made>>();
  readonly #turns = new YieldingCounter(stepsPerTurn);

  constructor(deps: PayloadVolumesDeps) {
    this.#deps = deps;
    this.#sources = new PayloadSources(deps);
  }

  /** Where each is to be found, made or not; a volume of another kind is missing from the answer. */
  of(pod: Pod): ReadonlyMap<string, PayloadVolume> {
    const places = this.#places(pod.metadata.uid);
    const found = new Map<string, PayloadVolume>();
    for (const volume of pod.spec.volumes ?? []) {
      const kind = payloadKindOf(volume);
      if (kind === undefined) continue;
      const hostPath = places.volume(kind, volume.name);
      found.set(volume.name, { kind: 'path', hostPath, readOnly: true });
    }
    return found;
  }

  /**
   * Makes those volumes that a container uses, and brings them up to date: to be called at each sync, and cheap when
   * nothing has changed. Answers what went wrong with which, in the order of the spec; rejects only when aborted. `done`
   * is told of each that is made, at once.
   */
  async make(
    pod: Pod,
    signal: AbortSignal,
    done: (volume: string) => void = () => {},
  ): Promise<readonly VolumeProblem[]> {
    const used = usedVolumes(pod);
    const wanted = (pod.spec.volumes ?? []).flatMap((volume) => {
      const kind = payloadKindOf(volume);
      return kind !== undefined && used.has(volume.name) ? [{ volume, kind }] : [];
    });
    if (wanted.length === 0) return [];
    using _held = await this.#lock.acquire(pod.metadata.uid, signal);
    const budget = PayloadBudget.ofPod();
    const problems = await mapConcurrently(wanted, async ({ volume, kind }) => {
      const problem = await this.#try(pod, { volume, kind, budget }, signal);
      if (problem?.content !== 'none') done(volume.name);
      return problem;
    });
    return problems.filter((problem) => problem !== undefined);
  }

  /**
   * To be called once nothing of the pod runs, also for pods of which nothing but the UID is known; may be repeated.
   * Rejects with VOLUME_REMOVE, naming the paths, for what is in use or not ours.
   */
  async remove(uid: PodUid, signal: AbortSignal): Promise<void> {
    using _held = await this.#lock.acquire(uid, signal);
    this.#written.delete(uid);
    this.#deps.api?.tokens.forgetPod(uid);
    await removeVolumes(this.#deps, this.#places(uid), signal);
  }

  async #try(
    pod: Pod,
    { volume, kind, budget }: FilledVolume,
    signal: AbortSignal,
  ): Promise<VolumeProblem | undefined> {
    const { clock, observe = () => {} } = this.#deps;
    try {
      await timed({ clock, observe }, 'volume_mount', [pluginOf(kind)], () =>
        this.#writeOne(pod, { volume, kind, budget }, signal),
      );
      return undefined;
    } catch (error) {
      signal.throwIfAborted();
      const directory = this.#places(pod.metadata.uid).volume(kind, volume.name);
      const content = (await isWhole(this.#deps.files, directory).catch(() => false)) ? 'earlier' : 'none';
      return { volume: volume.name, message: describeError(error), content };
    }
  }

  /** What it gets is known before anything is touched: what cannot be had leaves what is there alone. */
  async #writeOne(pod: Pod, { volume, kind, budget }: FilledVolume, signal: AbortSignal): Promise<void> {
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
    const places = this.#places(pod.metadata.uid);
    if (await this.#isCurrent(pod, name, places.volume(kind, name), { payload, digest })) return;
    const { files, allocatable } = this.#deps;
    const bytes = payloadBytes(payload);
    await prepareVolume(files, { pod, places, kind, name, bytes, nested }, allocatable(), signal);
    await this.#write(pod, name, places.volume(kind, name), { payload, digest, nested, kind });
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

  /** Two looks at the volume itself tell whether it is still there, and nothing of what users open was taken away. */
  async #isCurrent(
    pod: Pod,
    name: string,
    directory: string,
    { payload, digest }: { readonly payload: Payload; readonly digest: string },
  ): Promise<boolean> {
    const { uid } = pod.metadata;
    const made = this.#written.get(uid)?.get(name);
    if (made?.digest !== digest) return false;
    const { files } = this.#deps;
    if ((await files.readLink(posix.join(directory, dataLink))) !== made.version) return false;
    if (!(await isVisible(files, directory, payload))) return false;
    if (made.retired === undefined) return true;
    await removeLeftovers(files, { directory }, made.version);
    this.#recordWritten(uid, name, { ...made, retired: undefined });
    return true;
  }

  #recordWritten(uid: PodUid, name: string, made: Made): void {
    const ofPod = this.#written.get(uid) ?? new Map<string, Made>();
    this.#written.set(uid, ofPod.set(name, made));
  }

  #places(uid: PodUid): PodVolumePaths {
    return new PodVolumePaths(this.#deps.podsDir, uid);
  }
}

/** Its directory is named after it. */
function pluginOf({ directory }: PayloadKind): VolumePlugin {
  return { name: directory.replace('~', '/') };
}
