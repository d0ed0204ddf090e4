import { gadget } from '../devices/device-world.ts';
import { containerOf } from '../sketch.ts';
import type { Rule, Scene } from './scene.ts';

interface MadeContainer {
  readonly podSandboxId?: string;
  readonly config?: {
    readonly metadata?: { readonly name?: string; readonly attempt?: number };
    readonly labels?: Readonly<Record<string, string>>;
    readonly CDIDevices?: readonly { readonly name?: string }[];
    readonly envs?: readonly { readonly key?: string; readonly value?: Uint8Array }[];
  };
}

interface Instance {
  readonly podUid: string;
  readonly name: string;
  readonly attempt: number;
}

const keyOf = ({ podUid, name, attempt }: Instance) => `${podUid} ${name} #${attempt}`;

/**
 * A running container has all devices that its manifest requests, and shares none of them with
 * another container.
 */
export function devicesHaveOneOwner({ runtime, report, desk }: Scene): Rule {
  const given = new Map<string, readonly string[]>();
  const had = new Map<string, string>();
  return {
    calling(method, request) {
      if (method !== 'createContainer') return;
      const { metadata, labels = {}, envs = [], CDIDevices = [] } = (request as MadeContainer).config ?? {};
      // The sandbox ID identifies the pod, because a static pod that is removed and added again has
      // the same UID.
      const life = `${(request as MadeContainer).podSandboxId} ${metadata?.name}`;
      const podUid = labels['io.kubernetes.pod.uid'] ?? '';
      const name = metadata?.name ?? '';
      const value = envs.find(({ key }) => key === gadget)?.value;
      const devices = value === undefined ? [] : Buffer.from(value).toString().split(',');
      given.set(keyOf({ podUid, name, attempt: metadata?.attempt ?? 0 }), devices);
      const expected = containerOf(desk.known(podUid), name)?.devices ?? 0;
      if (devices.length !== expected)
        report(
          'containers have the devices they ask for',
          `${name} of ${podUid} has ${devices.length} of ${expected}`,
        );
      const named = CDIDevices.map((each) => each.name).join();
      if (named !== devices.map((id) => `${gadget}=${id}`).join())
        report(
          'the runtime is told the names of devices',
          `${name} of ${podUid} has ${devices.join()}: ${named}`,
        );
      const before = had.get(life) ?? devices.join();
      if (before !== devices.join())
        report(
          'containers keep their devices',
          `${name} of ${podUid} had ${before} and has ${devices.join()}`,
        );
      had.set(life, devices.join());
    },
    entry(entry) {
      if (entry.kind !== 'container-started') return;
      const own = given.get(keyOf(entry)) ?? [];
      for (const other of runtime.runningContainers()) {
        if (other.id === entry.id) continue;
        // Another invariant checks that only one instance of a container runs.
        if (other.podUid === entry.podUid && other.name === entry.name) continue;
        const shared = (given.get(keyOf(other)) ?? []).filter((id) => own.includes(id));
        if (shared.length > 0)
          report('no device has two owners', `${keyOf(entry)} and ${keyOf(other)} have ${shared.join()}`);
      }
    },
  };
}
