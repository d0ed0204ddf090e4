import { type Clock, pick, type Random } from '../../../src/lib/index.ts';
import type { PluginChannel, PluginHost, PluginSocket } from '../../../src/plugins/index.ts';
import {
  type GrpcCode,
  GrpcError,
  type ServiceClient,
  type ServiceType,
} from '../../../src/protocols/grpc/index.ts';
import type { MemoryVolumeFiles } from '../../fakes/memory-volume-files.ts';
import { draw } from '../../simulator/fault-rules.ts';

/** The probabilities of failures of a driver call. */
export interface DriverRates {
  readonly slow?: number;
  /** The call has no effect, and the driver returns a final error. */
  readonly refused?: number;
  /** The call has no effect, and an error with an uncertain code is returned. */
  readonly lost?: number;
  /** The call takes effect, but an error with an uncertain code is returned. */
  readonly unanswered?: number;
  /** The call takes effect long after the caller's deadline. */
  readonly hung?: number;
}

type Fault = 'slow' | 'refused' | 'lost' | 'unanswered' | 'hung';

/** The fields of CSI requests that the simulated driver reads. */
interface VolumeCall {
  readonly volumeId: string;
  readonly stagingTargetPath?: string;
  readonly targetPath?: string;
  readonly volumeCapability?: { readonly block?: object | undefined };
}

export interface DriverWitness {
  /** Called right before the driver changes a mount. */
  changing(method: string, path: string): void;
  broken(rule: string, what: string): void;
  note(what: string): void;
}

export interface SimulatedDriverOptions {
  readonly name: string;
  readonly stages: 'stages' | 'only-publishes';
  readonly clock: Clock;
  readonly random: Random;
  readonly files: MemoryVolumeFiles;
  readonly witness: DriverWitness;
}

const promptMs = 20;
const slowMs = 20_000;
/** A delay longer than any caller's deadline. */
const hungMs = 200_000;
const finalCodes: readonly GrpcCode[] = ['INTERNAL', 'INVALID_ARGUMENT', 'NOT_FOUND', 'FAILED_PRECONDITION'];
const uncertainCodes: readonly GrpcCode[] = ['UNAVAILABLE', 'DEADLINE_EXCEEDED', 'ABORTED'];

interface Pending {
  readonly volumeId: string;
  /** Ends the call because the driver was killed. */
  readonly lose: () => void;
}

/** A simulated CSI driver in its own process: its operations continue across kubelet restarts. */
export class SimulatedDriver {
  readonly name: string;
  readonly socket: string;
  /** Volume handles by staging path. */
  readonly staged = new Map<string, string>();
  readonly published = new Map<string, string>();
  readonly #options: SimulatedDriverOptions;
  readonly #pending = new Set<Pending>();
  #rates: DriverRates = {};
  #state: 'there' | 'deaf' | 'gone' = 'there';
  #lives = 1;

  constructor(options: SimulatedDriverOptions) {
    this.#options = options;
    this.name = options.name;
    this.socket = `/var/lib/kubelet/plugins_registry/${options.name}-reg.sock`;
  }

  set(rates: DriverRates): void {
    this.#rates = rates;
  }

  /** The driver's registration socket; undefined while it does not exist. */
  seen(): PluginSocket | undefined {
    return this.#state === 'gone' ? undefined : { path: this.socket, identity: `${this.#lives}` };
  }

  /** Kills the driver: `gone` removes its socket, `deaf` leaves it behind. */
  die(how: 'deaf' | 'gone'): void {
    if (this.#state === 'there') for (const pending of [...this.#pending]) pending.lose();
    this.#state = how;
  }

  comeBack(): void {
    if (this.#state === 'there') return;
    this.#state = 'there';
    this.#lives++;
  }

  async call(method: string, request: object, signal: AbortSignal): Promise<object> {
    if (this.#state !== 'there')
      throw new GrpcError('UNAVAILABLE', 'no process listens on the driver socket');
    switch (method) {
      case 'GetInfo':
        return { type: 'CSIPlugin', name: this.name, endpoint: this.socket, supportedVersions: ['1.0.0'] };
      case 'NotifyRegistrationStatus':
        return {};
      case 'NodeGetInfo':
        return { nodeId: 'here', maxVolumesPerNode: 0n, accessibleTopology: undefined };
      case 'NodeGetCapabilities':
        return { capabilities: this.#capabilities() };
      case 'NodeStageVolume':
      case 'NodeUnstageVolume':
      case 'NodePublishVolume':
      case 'NodeUnpublishVolume':
        return await this.#serve(method, request as VolumeCall, signal);
      default:
        throw new GrpcError('UNIMPLEMENTED', `unknown method ${method}`);
    }
  }

  #capabilities(): readonly object[] {
    const rpc = { rpc: { type: 'STAGE_UNSTAGE_VOLUME' } };
    return this.#options.stages === 'stages' ? [rpc] : [];
  }

  async #serve(method: string, request: VolumeCall, signal: AbortSignal): Promise<object> {
    const { volumeId } = request;
    const { random, witness } = this.#options;
    // A second operation on the same volume is rejected, as drivers without a queue do.
    if ([...this.#pending].some((pending) => pending.volumeId === volumeId))
      throw new GrpcError('ABORTED', `an operation on volume ${volumeId} is already in progress`);
    const fault = this.#draw();
    const path = request.targetPath ?? request.stagingTargetPath ?? '';
    witness.note(`csi ${this.name} ${method} ${volumeId.slice(0, 12)} ${path} ${fault ?? ''}`);
    const isDone = fault !== 'refused' && fault !== 'lost';
    const work = () => (isDone ? this.#change(method, request) : undefined);
    await this.#later(volumeId, this.#msOf(fault), work, signal);
    if (fault === 'refused')
      throw new GrpcError(pick(random, finalCodes) ?? 'INTERNAL', 'simulated final error of the driver');
    if (fault === 'lost' || fault === 'unanswered')
      throw new GrpcError(
        pick(random, uncertainCodes) ?? 'UNAVAILABLE',
        "simulated loss of the driver's response",
      );
    return {};
  }

  #msOf(fault: Fault | undefined): number {
    if (fault === 'hung') return hungMs;
    return this.#options.random.next() * (fault === 'slow' ? slowMs : promptMs);
  }

  /** Executes the operation after a delay, also when the caller has aborted. */
  #later(volumeId: string, ms: number, work: () => void, signal: AbortSignal): Promise<void> {
    const { clock, random } = this.#options;
    return new Promise((resolve, reject) => {
      const end = (finish: () => void) => {
        timer.cancel();
        this.#pending.delete(pending);
        signal.removeEventListener('abort', abandon);
        finish();
      };
      const done = () =>
        end(() => {
          try {
            work();
            resolve();
          } catch (error) {
            reject(error);
          }
        });
      const abandon = () => reject(new GrpcError('CANCELLED', 'the caller has aborted the call'));
      const lose = () => {
        // The operation may have taken effect before the driver was killed.
        if (random.next() < 0.5) done();
        end(() => reject(new GrpcError('UNAVAILABLE', 'the driver was killed')));
      };
      const pending: Pending = { volumeId, lose };
      const timer = clock.timer(ms, done);
      this.#pending.add(pending);
      signal.addEventListener('abort', abandon, { once: true });
      if (signal.aborted) abandon();
    });
  }

  #draw(): Fault | undefined {
    const { slow = 0, refused = 0, lost = 0, unanswered = 0, hung = 0 } = this.#rates;
    if (slow + refused + lost + unanswered + hung === 0) return undefined;
    return draw<Fault>(this.#options.random, [
      [slow, () => 'slow'],
      [refused, () => 'refused'],
      [lost, () => 'lost'],
      [unanswered, () => 'unanswered'],
      [hung, () => 'hung'],
    ]);
  }

  #change(
    method: string,
    { volumeId, stagingTargetPath: staging = '', targetPath: target = '', volumeCapability }: VolumeCall,
  ) {
    const isDevice = volumeCapability?.block !== undefined;
    switch (method) {
      case 'NodeStageVolume':
        if (!isDevice) this.#mount(staging);
        this.staged.set(staging, volumeId);
        return;
      case 'NodePublishVolume':
        if (staging !== '' && this.staged.get(staging) !== volumeId)
          throw new GrpcError('FAILED_PRECONDITION', `${volumeId} is not staged at ${staging}`);
        if (isDevice) this.#show(volumeId, target);
        else this.#mount(target);
        this.published.set(target, volumeId);
        return;
      case 'NodeUnpublishVolume':
        this.#refuseShown(volumeId, target);
        this.#unmount(method, target);
        this.published.delete(target);
        this.#removePlace(target);
        return;
      case 'NodeUnstageVolume':
        this.#refuseUsed(volumeId);
        this.#unmount(method, staging);
        this.staged.delete(staging);
    }
  }

  #refuseUsed(volumeId: string): void {
    for (const [target, id] of this.published)
      if (id === volumeId)
        this.#options.witness.broken('no volume is unstaged while a pod has it', `${volumeId} at ${target}`);
  }

  /**
   * Reports the removal of a device that is still mapped for a pod, because its name may be reused
   * for another device.
   */
  #refuseShown(volumeId: string, target: string): void {
    for (const { origin, directory } of this.#options.files.mounts())
      if (origin === volumeId && directory !== target)
        this.#options.witness.broken('no device goes while a pod is shown it', `${volumeId} at ${directory}`);
  }

  #show(device: string, path: string): void {
    const { files } = this.#options;
    if (files.entry(path)?.kind === 'device') return;
    if (files.entry(path) === undefined) void files.writeFile(path, Buffer.alloc(0), { mode: 0o640 });
    files.showDevice(device, path);
  }

  #removePlace(path: string): void {
    const { files } = this.#options;
    if (files.entry(path)?.kind === 'file') void files.unlink(path);
    else void files.removeEmptyDirectory(path);
  }

  #mount(path: string): void {
    const { files } = this.#options;
    if (files.mounts().some(({ directory }) => directory === path)) return;
    void files.makeDirectory(path, 0o750);
    files.mountForeign(path);
  }

  #unmount(method: string, path: string): void {
    const { files, witness } = this.#options;
    if (files.mounts().every(({ directory }) => directory !== path)) return;
    witness.changing(method, path);
    void files.unmount(path);
  }
}

/** The plugin host of the machine on which the simulated drivers listen. */
export function simulatedPlugins(
  drivers: readonly SimulatedDriver[],
  calling: (method: string, request: object) => void,
): PluginHost {
  return {
    prepare: async () => {},
    sockets: async () => drivers.flatMap((driver) => driver.seen() ?? []),
    watch: () => ({ [Symbol.dispose]: () => {} }),
    open: (socket) =>
      channelTo(
        drivers.find((driver) => driver.socket === socket),
        calling,
      ),
  };
}

function channelTo(
  driver: SimulatedDriver | undefined,
  calling: (method: string, request: object) => void,
): PluginChannel {
  const closed = new AbortController();
  const call = async (method: string, request: object, signal: AbortSignal): Promise<object> => {
    calling(method, request);
    const end = AbortSignal.any([closed.signal, signal]);
    if (driver === undefined || end.aborted)
      throw new GrpcError('UNAVAILABLE', 'no process listens on the driver socket');
    return await driver.call(method, request, end);
  };
  return {
    client: <Methods>(service: ServiceType<Methods>) =>
      Object.fromEntries(
        Object.entries<{ readonly name: string }>(service.methods).map(([key, { name }]) => [
          key,
          (request: object, { signal }: { readonly signal: AbortSignal }) => call(name, request, signal),
        ]),
      ) as ServiceClient<Methods>,
    close: () => closed.abort(),
  };
}
