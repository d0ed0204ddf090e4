import { posix } from 'node:path';
import { apiResources } from '../../../src/api/index.ts';
import { type Clock, pick, type Random } from '../../../src/lib/index.ts';
import type { PluginHost } from '../../../src/plugins/index.ts';
import type { Pod } from '../../../src/pods/index.ts';
import type { RuntimeFiles } from '../../../src/runtime/index.ts';
import type { BlockDevices, Disks, NetworkMounts, VolumeFiles } from '../../../src/volumes/index.ts';
import { MemoryBlockDevices } from '../../fakes/memory-block-devices.ts';
import { MemoryDisks } from '../../fakes/memory-disks.ts';
import { MemoryNetworkMounts } from '../../fakes/memory-network-mounts.ts';
import { MemoryVolumeFiles } from '../../fakes/memory-volume-files.ts';
import type { SimulatedApi } from '../../simulator/index.ts';
import { settings } from '../kubelet-life.ts';
import { AttachController } from './attach-controller.ts';
import { jointFiles, mountinfoOf, withParts } from './joint-files.ts';
import { deviceSteps, diskSteps, fileSteps, networkSteps } from './machine-steps.ts';
import {
  drivers as driverNames,
  fileNames,
  filled,
  kindsOf,
  placeOf,
  podDirOf,
  shownAt,
  stagedIdOf,
  type VolumeKind,
  visitorKinds,
} from './pod-volumes.ts';
import { SimulatedDriver, simulatedPlugins } from './simulated-driver.ts';
import { SimulatedServer } from './simulated-server.ts';
import { claim, diskOf } from './volume-claims.ts';
import { MachineTroubles } from './volume-faults.ts';
import { VolumeObjects } from './volume-objects.ts';
import type { VolumeStep } from './volume-steps.ts';

export interface VolumeWitness {
  /** Called right before a volume, or a directory of volumes, changes. */
  volumeChanging(method: string, path: string): void;
  broken(rule: string, what: string): void;
  calling(method: string, request: unknown): void;
  note(what: string): void;
}

export interface VolumeWorldOptions {
  readonly clock: Clock;
  readonly random: Random;
  /** The files of the machine outside of volumes. */
  readonly files: RuntimeFiles;
  readonly witness: VolumeWitness;
}

/**
 * The container that mounts a volume: `own` for a regular or init container, `visitor` for an
 * ephemeral container that is added later.
 */
export type ContainerRole = 'own' | 'visitor';

const namespace = 'default';
/**
 * The shared local disk with data, the disk used as a raw block device, and the directory of the
 * node's global mounts.
 */
const sharedDisk = '/dev/shared';
const rawDisk = '/dev/raw';
const diskMounts = posix.join(settings.rootDir, 'plugins/kubernetes.io/local-volume/mounts');

/**
 * The volumes of a simulated node: its files and mounts, its CSI drivers, and the volume objects of
 * the API.
 */
export class VolumeWorld {
  readonly memory = new MemoryVolumeFiles();
  readonly files: RuntimeFiles;
  readonly volumeFiles: VolumeFiles;
  readonly networkMounts: NetworkMounts;
  readonly disks: Disks;
  readonly blockDevices: BlockDevices;
  readonly plugins: PluginHost;
  readonly drivers: readonly SimulatedDriver[];
  readonly #memoryDisks = new MemoryDisks(this.memory);
  readonly #memoryDevices = new MemoryBlockDevices(this.memory);
  readonly #mounts = new MemoryNetworkMounts(this.memory);
  readonly #server: SimulatedServer;
  readonly #objects = new VolumeObjects();
  /** Failure injection for volume files, and for programs of the machine. */
  readonly #troubles: MachineTroubles;
  readonly #programTroubles: MachineTroubles;
  /** Disks with data, which must not be formatted. */
  readonly #written = new Set<string>([sharedDisk]);
  readonly #options: VolumeWorldOptions;
  /** The UIDs of pods with an ephemeral container. */
  readonly #visited = new Set<string>();
  /** Mount points whose NFS server has at any time lost its exports. */
  readonly #forgotten = new Set<string>();
  #attacher: AttachController | undefined;

  constructor(options: VolumeWorldOptions) {
    this.#options = options;
    const { clock, random, files, witness } = options;
    const changing = (method: string, path: string) => witness.volumeChanging(method, path);
    const { note } = witness;
    const { memory } = this;
    const shared = { clock, random, files: memory, witness: { changing, broken: witness.broken, note } };
    this.drivers = [
      new SimulatedDriver({ ...shared, name: driverNames.disks, stages: 'stages' }),
      new SimulatedDriver({ ...shared, name: driverNames.plain, stages: 'only-publishes' }),
      new SimulatedDriver({ ...shared, name: driverNames.far, stages: 'stages' }),
    ];
    this.plugins = simulatedPlugins(this.drivers, (method, request) =>
      witness.calling(`csi ${method}`, request),
    );
    const calling = (method: string, path: string) => witness.calling(method, path);
    this.#troubles = new MachineTroubles({ clock, random, calling, changing, note });
    this.#programTroubles = new MachineTroubles({ clock, random, calling, changing, note });
    const joint = jointFiles(files, memory);
    this.files = joint.files;
    this.volumeFiles = this.#troubles.around(joint.volumeFiles, fileSteps);
    this.#server = new SimulatedServer({ clock, random, mounts: this.#mounts, note, changing });
    this.networkMounts = this.#programTroubles.around<NetworkMounts>(this.#server, networkSteps);
    this.disks = this.#programTroubles.around<Disks>(
      withParts<Disks>(this.#memoryDisks, { format: (device, fsType) => this.#format(device, fsType) }),
      diskSteps,
    );
    this.blockDevices = this.#programTroubles.around<BlockDevices>(this.#memoryDevices, deviceSteps);
    memory.put('/data', { kind: 'directory', mode: 0o755, owner: 0, group: 0 });
    this.#memoryDisks.add(sharedDisk, { kind: 'file-system', type: 'xfs' });
    this.#memoryDisks.add(rawDisk, { kind: 'partitions' });
  }

  mountinfo(): string {
    return mountinfoOf(this.memory);
  }

  /** Creates the API objects that all pods refer to. */
  furnish(api: SimulatedApi): void {
    for (const name of Object.values(driverNames)) {
      const attachRequired = name === driverNames.far;
      const spec = { attachRequired, volumeLifecycleModes: ['Persistent', 'Ephemeral'] };
      api.put(apiResources.csiDrivers, { metadata: { name }, spec });
    }
    api.put(apiResources.serviceAccounts, { metadata: { namespace, name: 'default' } });
    this.#objects.fill(api);
    claim(api, 'shared', diskOf('shared'));
    claim(api, 'local', { local: { path: '/data' } });
    claim(api, 'disk', { local: { path: sharedDisk } });
    claim(api, 'device', { local: { path: rawDisk }, volumeMode: 'Block' });
    claim(api, 'claimed', { nfs: { server: 'server', path: '/claimed' } });
    this.#attacher = new AttachController({
      ...this.#options,
      ...this.#options.witness,
      api,
      placesOf: (id) => this.#placesOf(id),
    });
  }

  /** Creates the claims and disks of a pod before the pod itself. */
  provide(api: SimulatedApi, { metadata: { uid } }: Pod): void {
    const own = kindsOf(uid);
    if (own.includes('own')) claim(api, uid, diskOf(uid));
    if (own.includes('far')) claim(api, `far-${uid}`, diskOf(`far-${uid}`, driverNames.far));
    if (own.includes('raw'))
      claim(api, `raw-${uid}`, { ...diskOf(`raw-${uid}`, driverNames.far), volumeMode: 'Block' });
    if (!own.includes('blank')) return;
    this.#memoryDisks.add(blankDisk(uid), { kind: 'nothing' });
    claim(api, `blank-${uid}`, { local: { path: blankDisk(uid) } });
  }

  take(step: VolumeStep, api: SimulatedApi): void {
    switch (step.do) {
      case 'driver-faults':
        for (const driver of this.drivers) driver.set(step.rates);
        break;
      case 'file-faults':
        this.#troubles.set(step.rates);
        break;
      case 'machine-faults':
        this.#programTroubles.set(step.rates);
        break;
      case 'no-faults':
        this.#endFaults();
        break;
      case 'server':
        this.#turnServer(step.what);
        break;
      case 'driver-ends':
        pick({ next: () => step.choice }, this.drivers)?.die(step.how);
        break;
      case 'drivers-come-back':
        for (const driver of this.drivers) driver.comeBack();
        break;
      case 'update':
        this.#objects.update(api);
        break;
      case 'come-or-go':
        this.#objects.comeOrGo(api);
        break;
    }
  }

  heal(): void {
    this.#endFaults();
    for (const driver of this.drivers) driver.comeBack();
    this.#server.answer();
  }

  /** A new kubelet does not know the stuck programs of previous kubelets. */
  kubeletStarted(): void {
    this.#server.forgetStuck();
  }

  /**
   * Whether the NFS server has lost the export that is mounted at this path, or that was mounted
   * there before it was unmounted.
   */
  isLost(path: string): boolean {
    const isMounted = this.memory.mounts().some(({ directory }) => directory === path);
    return this.#mounts.broken.has(path) || (this.#forgotten.has(path) && !isMounted);
  }

  /** Records that a container of the pod starts, and may write to its volumes from now on. */
  started(uid: string, who: ContainerRole): void {
    if (who === 'visitor') this.#visited.add(uid);
    if (kindsOf(uid).includes('blank')) this.#written.add(blankDisk(uid));
  }

  close(): void {
    this.#attacher?.close();
    this.#troubles.close();
    this.#programTroubles.close();
  }

  /** Returns the volumes that the container needs and that are not mounted. */
  missing(uid: string, who: ContainerRole): readonly string[] {
    const all = who === 'visitor' ? [...kindsOf(uid), ...visitorKinds] : kindsOf(uid);
    return all.filter((kind) => !this.#isThere(uid, kind));
  }

  /** Volumes whose two files have different versions, which a reader in the pod could observe. */
  torn(uid: string): readonly string[] {
    return this.#filledOf(uid).flatMap((kind) => {
      const [a, b] = this.#texts(uid, kind);
      // The files of a newly created optional ConfigMap appear to readers one by one, so a missing
      // file is not an error.
      const isComing = kind === 'extra' && (a === undefined || b === undefined);
      return isComing || (a !== undefined && a === b) ? [] : [`${kind} says ${a} and ${b}`];
    });
  }

  /** Volumes of the pod whose files differ from the API objects. */
  outdated(uid: string): readonly string[] {
    return this.#filledOf(uid)
      .filter((kind) => kind !== 'labels')
      .flatMap((kind) => {
        const output = this.#objects.said(kind);
        const [found] = this.#texts(uid, kind);
        return found === output ? [] : [`${kind} says ${found} instead of ${output}`];
      });
  }

  /** The mounts and mapped devices of the pod, also those of previous kubelets. */
  mountedFor(uid: string): readonly string[] {
    const own = `${podDirOf(uid)}/`;
    const places = [
      ...this.memory.mounts().map(({ directory }) => directory),
      ...this.drivers.flatMap(({ published }) => [...published.keys()]),
    ];
    return [
      ...places.filter((place) => place.startsWith(own) || shownTo(place) === uid),
      ...[...this.#memoryDevices.pinned].filter((file) => shownTo(file) === uid),
    ];
  }

  /** All volume state on the node of pods that are not desired. */
  leftovers(expected: ReadonlySet<string>): readonly string[] {
    const isLeft = (path: string) => {
      const uid = /\/pods\/([0-9a-f]{32})(\/|$)/.exec(path)?.[1] ?? shownTo(path);
      return uid !== undefined && !expected.has(uid);
    };
    const used = new Set(
      [...expected].flatMap((uid) => kindsOf(uid).flatMap((kind) => stagedIdOf(uid, kind) ?? [])),
    );
    const isUnstaged = (path: string) => path.includes('/plugins/kubernetes.io/csi/') && used.size === 0;
    const isUsedDisk = (origin: string) =>
      [...expected].some((uid) =>
        kindsOf(uid).some(
          (kind) =>
            (kind === 'disk' && origin === sharedDisk) || (kind === 'blank' && origin === blankDisk(uid)),
        ),
      );
    return [
      ...this.#memoryDevices.pinned
        .values()
        .filter(isLeft)
        .map((file) => `held ${file}`),
      ...this.memory
        .mounts()
        .filter(({ directory }) => directory.startsWith(diskMounts))
        .flatMap(({ origin = '' }) => (isUsedDisk(origin) ? [] : [`mounted disk ${origin}`])),
      ...this.memory.paths().filter(isLeft),
      ...this.memory.mounts().flatMap(({ directory }) => (isLeft(directory) ? [`mount ${directory}`] : [])),
      ...[...(this.#attacher?.attached ?? [])].filter((id) => !used.has(id)).map((id) => `attached ${id}`),
      ...this.drivers.flatMap(({ published, staged }) => [
        ...[...published.keys()].filter(isLeft).map((target) => `published at ${target}`),
        ...[...staged.values()].filter((id) => !used.has(id)).map((id) => `staged ${id}`),
      ]),
      ...this.memory.paths().filter((path) => isUnstaged(path) && /globalmount$|vol_data.json$/.test(path)),
    ];
  }

  #filledOf(uid: string): readonly VolumeKind[] {
    const all = this.#visited.has(uid) ? [...kindsOf(uid), ...visitorKinds] : kindsOf(uid);
    return all.filter((kind) => filled.includes(kind));
  }

  #placesOf(id: string): readonly string[] {
    const places = this.drivers.flatMap(({ published, staged }) => [...published, ...staged]);
    return places.flatMap(([place, volumeId]) => (volumeId === id ? [place] : []));
  }

  #isThere(uid: string, kind: VolumeKind): boolean {
    const place = placeOf(uid, kind);
    const isMounted = this.memory.mounts().some(({ directory }) => directory === place);
    const isFilled = this.#texts(uid, kind).every((text) => text !== undefined);
    switch (kind) {
      case 'config':
      case 'read':
        return isFilled;
      case 'secret':
      case 'labels':
        return isMounted && isFilled;
      case 'projected':
        return isMounted && isFilled && this.memory.text(`${place}/token`) !== undefined;
      case 'memory':
      case 'noted':
      case 'local':
        return isMounted;
      case 'disk':
        return this.#isFrom(place, sharedDisk);
      case 'blank':
        return this.#isFrom(place, blankDisk(uid));
      case 'export':
      case 'claimed':
        return this.#isFrom(place, `server:/${kind}`);
      case 'device':
        return this.#isGiven(uid, kind, rawDisk);
      case 'raw':
        return this.#isGiven(uid, kind, `raw-${uid}`);
      case 'scratch':
      case 'extra':
        return this.memory.entry(place) !== undefined;
      default:
        return isMounted && this.drivers.some(({ published }) => published.has(place));
    }
  }

  #isFrom(path: string, origin: string): boolean {
    return this.memory.mounts().findLast(({ directory }) => directory === path)?.origin === origin;
  }

  /** Whether the block device is linked in the pod directory, mapped and held open. */
  #isGiven(uid: string, kind: VolumeKind, device: string): boolean {
    const shown = shownAt(uid, kind);
    const link = this.memory.entry(placeOf(uid, kind));
    const found = link?.kind === 'link' ? this.memory.entry(link.target) : undefined;
    return (
      [found, this.memory.entry(shown)].every(
        (entry) => entry?.kind === 'device' && entry.device === device,
      ) && this.#memoryDevices.pinned.has(shown)
    );
  }

  async #format(device: string, fsType: string): Promise<void> {
    if (this.#written.has(device))
      this.#options.witness.broken('no disk is formatted that has something on it', `${device} as ${fsType}`);
    await this.#memoryDisks.format(device, fsType);
  }

  #endFaults(): void {
    for (const driver of this.drivers) driver.set({});
    this.#troubles.set({});
    this.#programTroubles.set({});
  }

  #turnServer(what: 'falls-silent' | 'answers' | 'forgets'): void {
    const own = this.memory.mounts().filter(({ origin }) => origin?.startsWith('server:'));
    if (what === 'falls-silent') this.#server.fallSilent();
    else if (what === 'answers') this.#server.answer();
    else {
      for (const { directory } of own) this.#forgotten.add(directory);
      this.#server.lose(own.map(({ directory }) => directory));
    }
  }

  #texts(uid: string, kind: VolumeKind): readonly (string | undefined)[] {
    return fileNames.map((name) => this.memory.text(`${placeOf(uid, kind)}/${name}`));
  }
}

function blankDisk(uid: string): string {
  return `/dev/blank-${uid}`;
}

/** The UID of the pod for which a device is mapped or created at this path. */
function shownTo(path: string): string | undefined {
  return /\/plugins\/.*\/volumeDevices\/.*\/([0-9a-f]{32})$/.exec(path)?.[1];
}
