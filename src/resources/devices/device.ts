import type { Container } from '../../kinds/index.ts';
import { quantityValue, tryParseQuantity } from '../../lib/index.ts';
import type { Pod } from '../../pods/index.ts';
import type { Device as ListedDevice } from './gen/device-plugin.ts';

export interface Device {
  readonly id: string;
  readonly isHealthy: boolean;
  /** Near which it is; empty where nobody knows, or it does not matter. */
  readonly numaNodes: readonly number[];
}

/** A device, and the NUMA nodes it is near. */
export interface PlacedDevice {
  readonly resource: string;
  readonly id: string;
  readonly numaNodes: readonly number[];
}

/** In the order the plugin lists them; of those with one id the last counts. */
export function readDevices(listed: readonly ListedDevice[]): ReadonlyMap<string, Device> {
  return new Map(
    listed.map(({ ID: id, health, topology }) => {
      const numaNodes = (topology?.nodes ?? []).map((node) => Number(node.ID));
      return [id, { id, isHealthy: health === 'Healthy', numaNodes }];
    }),
  );
}

/**
 * How many of each resource the container is to have, sorted by name. Of what comes by the piece nobody may ask for more than
 * he is held to, so that the limits say it all. What claims stand for is not given out here.
 */
export function deviceRequests({ status }: Pod, container: Container): ReadonlyMap<string, number> {
  const { requestMappings = [] } = status.extendedResourceClaimStatus ?? {};
  const claimed = requestMappings.filter(({ containerName }) => containerName === container.name);
  const asked = Object.entries(container.resources?.limits ?? {})
    .filter(([name]) => name.includes('/') && claimed.every(({ resourceName }) => resourceName !== name))
    .map(([name, text]): [string, number] => [name, wholeNumber(text)])
    .toSorted(([one], [other]) => (one < other ? -1 : 1));
  return new Map(asked);
}

function wholeNumber(text: string): number {
  const quantity = tryParseQuantity(text);
  return quantity === undefined ? 0 : Number(quantityValue(quantity));
}
