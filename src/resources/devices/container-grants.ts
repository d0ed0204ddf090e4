import type { Logger } from '../../lib/index.ts';
import type { DeviceGrants } from '../../runtime/index.ts';
import type { Allotment } from './allotments.ts';
import { ContainerAllocateResponse } from './gen/device-plugin.ts';

/** What the devices of a container bring along, all resources together. Of two that want the same place the first wins. */
export function containerGrants(allotments: readonly Allotment[], logger: Logger): DeviceGrants {
  const responses = allotments.map(({ response }) => ContainerAllocateResponse.decode(response));
  const podUid = allotments[0]?.uid;
  const first = <Item>(
    kind: string,
    items: readonly Item[],
    place: (item: Item) => string,
    value: (item: Item) => string,
  ): readonly Item[] => {
    const seen = new Map<string, Item>();
    for (const item of items) {
      const before = seen.get(place(item));
      if (before === undefined) seen.set(place(item), item);
      else if (value(before) !== value(item))
        logger.warn('Two devices of a container want different things of the same name, the first has it', {
          podUid,
          kind,
          name: place(item),
        });
    }
    return [...seen.values()];
  };
  const byKey = ([key]: readonly [string, string]) => key;
  const byValue = ([, value]: readonly [string, string]) => value;
  const envs = responses.flatMap((one) => Object.entries(one.envs));
  const notes = responses.flatMap((one) => Object.entries(one.annotations));
  const containerPath = (item: { readonly containerPath: string }) => item.containerPath;
  const hostPath = (item: { readonly hostPath: string }) => item.hostPath;
  const mounts = responses.flatMap((one) => one.mounts);
  const devices = responses.flatMap((one) => one.devices);
  return {
    variables: first('variable', envs, byKey, byValue).map(([name, value]) => ({
      name,
      value: Buffer.from(value),
    })),
    annotations: Object.fromEntries(first('annotation', notes, byKey, byValue)),
    mounts: first('mount', mounts, containerPath, hostPath).map((mount) => ({
      containerPath: mount.containerPath,
      hostPath: mount.hostPath,
      readonly: mount.readOnly,
    })),
    devices: first('device', devices, containerPath, hostPath).map((device) => ({
      containerPath: device.containerPath,
      hostPath: device.hostPath,
      permissions: device.permissions,
    })),
    cdiDevices: [...new Set(responses.flatMap((one) => one.cdiDevices.map(({ name }) => name)))],
  };
}
