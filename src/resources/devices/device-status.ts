import type { ResourceStatus } from '../../kinds/index.ts';
import { type Allotment, idsOf } from './allotments.ts';
import type { DeviceTable } from './device-table.ts';

/** How the devices of a container are, as its status tells. */
export function deviceStatus(
  allotments: readonly Allotment[],
  table: Pick<DeviceTable, 'device' | 'devices'>,
): readonly ResourceStatus[] {
  return allotments
    .toSorted((one, other) => (one.resource < other.resource ? -1 : 1))
    .map((allotment) => ({
      name: allotment.resource,
      resources: [...idsOf(allotment)]
        .toSorted()
        .map((resourceID) => ({ resourceID, health: healthOf(allotment.resource, resourceID, table) })),
    }));
}

function healthOf(resource: string, id: string, table: Pick<DeviceTable, 'device' | 'devices'>): string {
  const device = table.device(resource, id);
  if (device !== undefined) return device.isHealthy ? 'Healthy' : 'Unhealthy';
  // What a plugin has not told of yet is taken to be as it was; what it does not list any more may be anything.
  return table.devices(resource).length === 0 ? 'Healthy' : 'Unknown';
}
