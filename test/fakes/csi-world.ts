import assert from 'node:assert/strict';
import type {
  CSIDriver,
  PersistentVolume,
  PersistentVolumeClaim,
  Secret,
  VolumeAttachment,
} from '../../src/kinds/index.ts';
import { collectLogs, KubelingError, seededRandom } from '../../src/lib/index.ts';
import { type PodUid, podUid } from '../../src/pods/index.ts';
import { Expansions } from '../../src/volumes/claims/expansions.ts';
import type { CsiApi } from '../../src/volumes/csi/csi-attach.ts';
import type { CsiClient } from '../../src/volumes/csi/csi-client.ts';
import type { CsiVolume } from '../../src/volumes/csi/csi-request.ts';
import { CsiVolumes, type CsiVolumesDeps } from '../../src/volumes/csi/csi-volumes.ts';
import type {
  NodeCapability,
  NodeExpandVolumeRequest,
  NodeGetVolumeStatsResponse,
  NodePublishVolumeRequest,
  NodeStageVolumeRequest,
} from '../../src/volumes/csi/gen/node.ts';
import type { StorageObserver } from '../../src/volumes/manager/volume-metrics.ts';
import { MemoryVolumeFiles } from './memory-volume-files.ts';
import { VirtualClock } from './virtual-clock.ts';

export const driver = 'd.example';
export const otherUid = podUid('other');

export const disk: CsiVolume = {
  name: 'pv',
  driver,
  handle: 'disk',
  mode: 'Persistent',
  fsType: 'ext4',
  readOnly: false,
  attributes: { a: 'b' },
  mountOptions: ['noatime'],
  accessMode: 'ReadWriteOnce',
};

/** A simulated machine with one CSI driver, whose mounts exist only in memory. */
export class CsiWorld {
  readonly files = new MemoryVolumeFiles();
  readonly clock = new VirtualClock();
  readonly history: string[] = [];
  readonly looked: PodUid[] = [];
  readonly notedVolumes = new Map<string, { readonly driver: string; readonly handle: string }>();
  readonly reconstructed: string[] = [];
  boot = 'boot-1';
  readonly observed: string[] = [];
  readonly requests: (NodePublishVolumeRequest | NodeStageVolumeRequest)[] = [];
  readonly can = new Set<NodeCapability>(['STAGE_UNSTAGE_VOLUME']);
  readonly troubles = new Map<string, Error>();
  readonly logs = collectLogs(this.clock);
  isThere = true;
  isListed = true;
  listed: string[] = [];
  noted: string[] = [];
  driver: CSIDriver | Error | undefined = { spec: { attachRequired: false } };
  attachment: VolumeAttachment | undefined;
  secret: Secret | Error | undefined;
  claim: PersistentVolumeClaim | undefined;
  volume: PersistentVolume | undefined;
  stats: NodeGetVolumeStatsResponse = { usage: [], volumeCondition: undefined };
  readonly expansions: NodeExpandVolumeRequest[] = [];
  /** The API events of pods and claims. */
  readonly events: string[] = [];

  readonly client: CsiClient = {
    capabilities: async () => this.can,
    info: async () => assert.fail(),
    stage: async (request) => {
      await this.#call('stage', request.stagingTargetPath);
      this.requests.push(request);
      this.files.mountForeign(request.stagingTargetPath);
    },
    unstage: async (_id, path) => {
      await this.#call('unstage', path);
      if ((await this.files.mountAt(path)) !== 'none') await this.files.unmount(path);
    },
    publish: async (request) => {
      await this.#call('publish', request.targetPath);
      this.requests.push(request);
      await this.files.makeDirectory(request.targetPath, 0o750);
      if ((await this.files.mountAt(request.targetPath)) === 'none')
        this.files.mountForeign(request.targetPath);
    },
    unpublish: async (_id, path) => {
      await this.#call('unpublish', path);
      if ((await this.files.mountAt(path)) !== 'none') await this.files.unmount(path);
      await this.files.removeEmptyDirectory(path);
    },
    expand: async (request) => {
      await this.#call('expand', request.volumePath);
      this.expansions.push(request);
    },
    stats: async ({ volumePath }) => {
      await this.#call('stats', volumePath);
      return this.stats;
    },
    close: () => {},
  };

  readonly #api: CsiApi = {
    driver: async () => {
      if (this.driver instanceof Error) throw this.driver;
      return this.driver;
    },
    attachment: async () => this.attachment,
    secret: async () => {
      if (this.secret instanceof Error) throw this.secret;
      return this.secret;
    },
    claim: async () => this.claim,
    volume: async () => this.volume,
    changeClaim: async (claim, change) => {
      this.history.push(`claim ${JSON.stringify(change)}`);
      this.claim = { ...claim, status: merged(claim.status ?? {}, change) };
      return this.claim;
    },
    claimEvent: (claim, { reason, message }) =>
      void this.events.push(`${claim.metadata?.name} ${reason} ${message}`),
    isListed: async () => this.isListed,
    listed: () => this.listed,
    tokens: {
      get: async ({ audience }) => ({ token: `t-${audience}`, expiresMs: 0 }) as never,
    },
  };
  readonly #journal: CsiVolumesDeps['journal'] = {
    event: (_pod, { reason, message }) => void this.events.push(`pod ${reason} ${message}`),
  };

  /** Creates the volumes in the state of a newly started kubelet. */
  volumes(changes: Partial<CsiVolumesDeps> = {}): CsiVolumes {
    const { files, clock } = this;
    const [api, nodeName] = [this.#api, 'n1'];
    const journal = this.#journal;
    const observe: StorageObserver = (operation, plugin, { outcome }) =>
      void this.observed.push(
        `${operation} ${plugin.name} ${outcome}${plugin.origin === undefined ? '' : ` ${plugin.origin}`}`,
      );
    return new CsiVolumes({
      rootDir: '/root',
      podsDir: '/root/pods',
      nodeName,
      expansions: new Expansions({ nodeName, api, clock, journal, observe }),
      hideDevices: async (uid) => void this.history.push(`hide ${uid}`),
      drivers: {
        get: (name) => {
          if (this.isThere && name === driver) return { name, client: this.client, can: this.can };
          throw new KubelingError('CSI_ABSENT', `driver name ${name} not found`);
        },
      },
      api,
      files,
      clock,
      random: seededRandom(1),
      logger: this.logs.logger,
      journal,
      observe,
      isRecorded: (_driver, handle) => this.noted.includes(handle),
      recordedVolume: (uid, name) => this.notedVolumes.get(`${uid}/${name}`),
      recordedHandles: () => this.noted,
      bootId: async () => this.boot,
      reconstruction: (what, outcome) => void this.reconstructed.push(`${what} ${outcome}`),
      limitReached: (name) => void this.history.push(`limit ${name}`),
      requestSync: (uid) => void this.looked.push(uid),
      inUseChanged: () => {},
      ...changes,
    });
  }

  /** Terminates the pod and waits for the clean-up of its volumes. */
  async ends(volumes: CsiVolumes, uid: PodUid): Promise<void> {
    await volumes.remove(uid, new AbortController().signal);
    await this.runs(volumes);
  }

  /** Returns the driver calls without their paths. */
  calls(): readonly string[] {
    return this.history.map((call) => call.split(' ')[0] ?? '');
  }

  /** Runs the due work of the background loop. */
  async runs(volumes: CsiVolumes, ms = 0): Promise<void> {
    const end = new AbortController();
    const running = volumes.run(end.signal).catch(() => {});
    await this.clock.advance(ms);
    end.abort(new Error('over'));
    await running;
  }

  async #call(name: string, path: string): Promise<void> {
    this.history.push(`${name} ${path}`);
    const trouble = this.troubles.get(name);
    if (trouble !== undefined) throw trouble;
  }
}

/** Applies the change as a merge patch. */
function merged(before: object, change: object): object {
  const result: Record<string, unknown> = { ...before };
  for (const [name, value] of Object.entries(change)) {
    if (value === null) delete result[name];
    else if (typeof value !== 'object' || Array.isArray(value)) result[name] = value;
    else result[name] = merged((result[name] as object | undefined) ?? {}, value);
  }
  return result;
}

export const refusal = () => new KubelingError('CSI_REFUSED', 'rpc error: code = Internal desc = no');
export const silence = () => new KubelingError('CSI_UNCERTAIN', 'rpc error: code = Unavailable desc = gone');
