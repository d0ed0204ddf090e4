import { apiResources } from '../../../src/api/index.ts';
import { type Clock, pick, type Random } from '../../../src/lib/index.ts';
import type { PluginHost } from '../../../src/plugins/index.ts';
import type { Pod } from '../../../src/pods/index.ts';
import type { RuntimeFiles } from '../../../src/runtime/index.ts';
import type { SimulatedApi } from '../../../src/simulator/index.ts';
import { MemoryVolumeFiles, type VolumeFiles } from '../../../src/volumes/index.ts';
import { AttachController } from './attach-controller.ts';
import { jointFiles, mountinfoOf } from './joint-files.ts';
import {
  drivers as driverNames,
  fileNames,
  filled,
  kindsOf,
  objectNames,
  placeOf,
  podDirOf,
  stagedIdOf,
  type VolumeKind,
} from './pod-volumes.ts';
import { SimulatedDriver, simulatedPlugins } from './simulated-driver.ts';
import { FileTroubles } from './volume-faults.ts';
import type { VolumeStep } from './volume-steps.ts';

export interface VolumeWitness {
  /** Told right before a volume, or a directory of volumes, changes. */
  volumeChanging(method: string, path: string): void;
  broken(rule: string, what: string): void;
  calling(method: string, request: unknown): void;
  note(what: string): void;
}

export interface VolumeWorldOptions {
  readonly clock: Clock;
  readonly random: Random;
  /** What else the machine has. */
  readonly files: RuntimeFiles;
  readonly witness: VolumeWitness;
}

const namespace = 'default';

/** The volumes of a simulated node: its files and mounts, the drivers on it, and what the API has of them. */
export class VolumeWorld {
  readonly memory = new MemoryVolumeFiles();
  readonly files: RuntimeFiles;
  readonly volumeFiles: VolumeFiles;
  readonly plugins: PluginHost;
  readonly drivers: readonly SimulatedDriver[];
  readonly #troubles: FileTroubles;
  readonly #options: VolumeWorldOptions;
  #attacher: AttachController | undefined;
  #number = 0;

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
    this.#troubles = new FileTroubles({
      clock,
      random,
      changing: (method, path) => {
        witness.calling(`volume ${method}`, path);
        changing(method, path);
      },
    });
    const joint = jointFiles(files, memory);
    this.files = joint.files;
    this.volumeFiles = this.#troubles.around(joint.volumeFiles);
    memory.put('/data', { kind: 'directory', mode: 0o755, owner: 0, group: 0 });
  }

  mountinfo(): string {
    return mountinfoOf(this.memory);
  }

  /** What pods refer to. */
  furnish(api: SimulatedApi): void {
    for (const name of Object.values(driverNames)) {
      const attachRequired = name === driverNames.far;
      const spec = { attachRequired, volumeLifecycleModes: ['Persistent', 'Ephemeral'] };
      api.put(apiResources.csiDrivers, { metadata: { name }, spec });
    }
    api.put(apiResources.serviceAccounts, { metadata: { namespace, name: 'default' } });
    this.#fill(api);
    claim(api, 'shared', diskOf('shared'));
    claim(api, 'local', { local: { path: '/data' } });
    this.#attacher = new AttachController({
      ...this.#options,
      ...this.#options.witness,
      api,
      placesOf: (id) => this.#placesOf(id),
    });
  }

  /** Before the pod is there. */
  provide(api: SimulatedApi, { metadata: { uid } }: Pod): void {
    const own = kindsOf(uid);
    if (own.includes('own')) claim(api, uid, diskOf(uid));
    if (own.includes('far')) claim(api, `far-${uid}`, diskOf(`far-${uid}`, driverNames.far));
  }

  take(step: VolumeStep, api: SimulatedApi): void {
    switch (step.do) {
      case 'driver-faults':
        for (const driver of this.drivers) driver.set(step.rates);
        break;
      case 'file-faults':
        this.#troubles.set(step.rates);
        break;
      case 'no-faults':
        for (const driver of this.drivers) driver.set({});
        this.#troubles.set({});
        break;
      case 'driver-ends':
        pick({ next: () => step.choice }, this.drivers)?.die(step.how);
        break;
      case 'drivers-come-back':
        for (const driver of this.drivers) driver.comeBack();
        break;
      case 'update':
        this.#number++;
        this.#fill(api);
        break;
    }
  }

  heal(): void {
    for (const driver of this.drivers) {
      driver.set({});
      driver.comeBack();
    }
    this.#troubles.set({});
  }

  close(): void {
    this.#attacher?.close();
  }

  /** What the containers of the pod would not find. */
  missing(uid: string): readonly string[] {
    return kindsOf(uid).filter((kind) => !this.#isThere(uid, kind));
  }

  /** What readers in the pod see that is no whole. */
  torn(uid: string): readonly string[] {
    return kindsOf(uid)
      .filter((kind) => filled.includes(kind))
      .flatMap((kind) => {
        const [a, b] = this.#texts(uid, kind);
        return a !== undefined && a === b ? [] : [`${kind} says ${a} and ${b}`];
      });
  }

  /** What files of the pod say that its objects do not. */
  outdated(uid: string): readonly string[] {
    return kindsOf(uid)
      .filter((kind) => filled.includes(kind) && kind !== 'labels')
      .filter((kind) => this.#texts(uid, kind)[0] !== String(this.#number))
      .map((kind) => `${kind} says ${this.#texts(uid, kind)[0]} instead of ${this.#number}`);
  }

  /** What is mounted for the pod, whoever did it. */
  mountedFor(uid: string): readonly string[] {
    const own = `${podDirOf(uid)}/`;
    const places = [
      ...this.memory.mounts().map(({ directory }) => directory),
      ...this.drivers.flatMap(({ published }) => [...published.keys()]),
    ];
    return places.filter((place) => place.startsWith(own));
  }

  /** Everything of pods but those that are wanted. */
  leftovers(wanted: ReadonlySet<string>): readonly string[] {
    const isLeft = (path: string) => {
      const uid = /\/pods\/([0-9a-f]{32})(\/|$)/.exec(path)?.[1];
      return uid !== undefined && !wanted.has(uid);
    };
    const used = new Set(
      [...wanted].flatMap((uid) => kindsOf(uid).flatMap((kind) => stagedIdOf(uid, kind) ?? [])),
    );
    const isUnstaged = (path: string) => path.includes('/plugins/kubernetes.io/csi/') && used.size === 0;
    return [
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
        return isFilled;
      case 'secret':
      case 'labels':
        return isMounted && isFilled;
      case 'projected':
        return isMounted && isFilled && this.memory.text(`${place}/token`) !== undefined;
      case 'memory':
      case 'local':
        return isMounted;
      case 'scratch':
        return this.memory.entry(place) !== undefined;
      default:
        return isMounted && this.drivers.some(({ published }) => published.has(place));
    }
  }

  #texts(uid: string, kind: VolumeKind): readonly (string | undefined)[] {
    return fileNames.map((name) => this.memory.text(`${placeOf(uid, kind)}/${name}`));
  }

  #fill(api: SimulatedApi): void {
    const text = String(this.#number);
    const coded = Buffer.from(text).toString('base64');
    const all = (value: string) => Object.fromEntries(fileNames.map((name) => [name, value]));
    api.put(apiResources.configMaps, { metadata: { namespace, name: objectNames.config }, data: all(text) });
    api.put(apiResources.secrets, { metadata: { namespace, name: objectNames.secret }, data: all(coded) });
  }
}

function diskOf(handle: string, driver: string = driverNames.disks): object {
  return { csi: { driver, volumeHandle: handle } };
}

/** A volume and the claim that has it. */
function claim(api: SimulatedApi, name: string, source: object): void {
  const uid = `claim-${name}`;
  const accessModes = ['ReadWriteMany'];
  const claimRef = { namespace, name, uid };
  api.put(apiResources.persistentVolumes, { metadata: { name }, spec: { accessModes, claimRef, ...source } });
  api.put(apiResources.persistentVolumeClaims, {
    metadata: { namespace, name, uid },
    spec: { accessModes, volumeName: name },
    status: { phase: 'Bound' },
  });
}
