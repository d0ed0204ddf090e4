import { type Clock, pick, type Random, randomInt } from '../../../src/lib/index.ts';
import { GrpcError } from '../../../src/protocols/grpc/index.ts';
import { SimulatedDevices, type SimulatedPlugin } from '../../fakes/simulated-devices.ts';
import type { Step, TimedStep } from '../script.ts';
import type { ContainerSketch, PodSketch } from '../sketch.ts';

export const gadget = 'sim.example/gadget';

/** One action on the device plugin or its devices. */
export type DeviceStep =
  | { readonly do: 'die' }
  | { readonly do: 'return' }
  /** The device plugin registers again although it did not fail. */
  | { readonly do: 'register' }
  | { readonly do: 'break' }
  | { readonly do: 'end-list' }
  | { readonly do: 'health'; readonly well: readonly boolean[] }
  | { readonly do: 'fail'; readonly method: 'allocate' | 'preStartContainer' }
  | { readonly do: 'no-failures' };

const ids = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'] as const;

/** A simulated device plugin with eight devices; it keeps running across kubelet restarts. */
export class DeviceWorld {
  readonly host: SimulatedDevices;
  readonly #plugin: SimulatedPlugin;

  constructor(clock: Clock, random: Random) {
    this.host = new SimulatedDevices(clock);
    const preStartRequired = random.next() < 0.5;
    this.#plugin = this.host.add(gadget, all(), { preStartRequired });
  }

  take(step: DeviceStep): void {
    const plugin = this.#plugin;
    switch (step.do) {
      case 'die':
        plugin.die();
        break;
      case 'return':
        if (plugin.state === 'gone') plugin.comeBack();
        this.#register();
        break;
      case 'register':
        if (plugin.state === 'there') this.#register();
        break;
      case 'break':
        plugin.breakConnections();
        break;
      case 'end-list':
        plugin.endLists(undefined);
        break;
      case 'health':
        plugin.tell(
          ids.map((id, index) => ({ id, health: step.well[index] === true ? 'Healthy' : 'Unhealthy' })),
        );
        break;
      case 'fail':
        plugin.troubles.set(step.method, GrpcError.fromPeer('INTERNAL', 'the device is on fire'));
        break;
      case 'no-failures':
        plugin.troubles.clear();
    }
  }

  heal(): void {
    this.take({ do: 'no-failures' });
    this.#plugin.tell(all());
    this.take({ do: 'return' });
  }

  #register(): void {
    void this.host.register(this.#plugin).catch(() => {});
  }
}

function all() {
  return ids.map((id) => ({ id }));
}

/** Makes pods of a simulated seed request devices, and adds actions on the device plugin. */
export function withDevices(random: Random, script: readonly TimedStep[]): readonly TimedStep[] {
  const spanMs = Math.max(60_000, script.at(-1)?.atMs ?? 0);
  const known = new Map<PodSketch, PodSketch>();
  const equipped = (sketch: PodSketch) => {
    const found = known.get(sketch) ?? withDevicesOf(random, sketch);
    known.set(sketch, found);
    return found;
  };
  const written = script.map(({ atMs, step }): TimedStep => {
    const isPod = step.do === 'write' && step.sketch.source === undefined;
    return { atMs, step: isPod ? { ...step, sketch: equipped(step.sketch) } : step };
  });
  const events = Array.from({ length: randomInt(random, 7) }, () => deviceEvents(random, spanMs)).flat();
  return [...written, ...events].toSorted((each, other) => each.atMs - other.atMs);
}

function withDevicesOf(random: Random, sketch: PodSketch): PodSketch {
  if (random.next() < 0.3) return sketch;
  const some = (container: ContainerSketch): ContainerSketch => {
    const devices = pick(random, [0, 1, 1, 2]) ?? 0;
    return devices === 0 ? container : { ...container, devices };
  };
  return { ...sketch, init: sketch.init.map(some), containers: sketch.containers.map(some) };
}

function deviceEvents(random: Random, spanMs: number): readonly TimedStep[] {
  const atMs = random.next() * spanMs;
  const laterMs = atMs + random.next() * (pick(random, [100, 5_000, 60_000, 400_000]) ?? 0);
  const at = (ms: number, what: DeviceStep): TimedStep => ({
    atMs: ms,
    step: { do: 'devices', what } as Step,
  });
  switch (
    pick(random, ['die', 'die', 'register', 'break', 'end-list', 'health', 'health', 'fail'] as const)
  ) {
    case 'die':
      return [at(atMs, { do: 'die' }), at(laterMs, { do: 'return' })];
    case 'end-list':
      return [at(atMs, { do: 'end-list' }), at(laterMs, { do: 'register' })];
    case 'break':
      return [at(atMs, { do: 'break' })];
    case 'health':
      return [at(atMs, { do: 'health', well: ids.map(() => random.next() < 0.7) })];
    case 'fail': {
      const method = pick(random, ['allocate', 'preStartContainer'] as const) ?? 'allocate';
      return [at(atMs, { do: 'fail', method }), at(laterMs, { do: 'no-failures' })];
    }
    default:
      return [at(atMs, { do: 'register' })];
  }
}
