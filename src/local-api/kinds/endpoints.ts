import { sameValue } from '../../api/index.ts';
import type { EndpointAddress, EndpointPort, EndpointSubset } from '../../kinds/index.ts';
import { dnsLabel, dnsSubdomain } from '../../pods/validation/index.ts';
import type { FieldCause, ResourceStrategy, StoredObject, WriteContext } from '../api/index.ts';
import {
  addressCauses,
  endpointAddressCauses,
  invalid,
  oneOf,
  portCauses,
  required,
} from '../validation/causes.ts';
import { validatorFor, withFields } from '../validation/metadata.ts';

export const endpointsStrategy: ResourceStrategy = {
  createOnUpdate: 'allowed',
  prepare: (object, { warn, verb }) => {
    if (verb !== 'delete')
      warn('v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice');
    return withFields(object, { subsets: subsetsOf(object)?.map(withDefaults) });
  },
  validate: validatorFor(dnsSubdomain, endpointsCauses),
};

function subsetsOf(object: StoredObject): readonly EndpointSubset[] | undefined {
  return object['subsets'] as readonly EndpointSubset[] | undefined;
}

function withDefaults(subset: EndpointSubset): EndpointSubset {
  const ports = subset.ports?.map((port) =>
    (port.protocol ?? '') === '' ? { ...port, protocol: 'TCP' } : port,
  );
  return ports === undefined ? subset : { ...subset, ports };
}

function endpointsCauses(object: StoredObject, { before }: WriteContext): readonly FieldCause[] {
  if (before !== undefined && sameValue(before['subsets'], object['subsets'])) return [];
  return (subsetsOf(object) ?? []).flatMap((subset, index) => subsetCauses(subset, `subsets[${index}]`));
}

function subsetCauses(subset: EndpointSubset, field: string): readonly FieldCause[] {
  const { addresses = [], notReadyAddresses = [], ports = [] } = subset;
  const isEmpty = addresses.length === 0 && notReadyAddresses.length === 0;
  return [
    ...(isEmpty ? [required(field, 'must specify `addresses` or `notReadyAddresses`')] : []),
    ...addresses.flatMap((address, index) => oneAddress(address, `${field}.addresses[${index}]`)),
    ...notReadyAddresses.flatMap((address, index) =>
      oneAddress(address, `${field}.notReadyAddresses[${index}]`),
    ),
    ...ports.flatMap((port, index) => onePort(port, `${field}.ports[${index}]`, ports.length)),
  ];
}

function oneAddress({ ip, hostname, nodeName }: EndpointAddress, field: string): readonly FieldCause[] {
  return [
    ...addressCauses(`${field}.ip`, ip),
    ...(hostname === undefined ? [] : dnsLabel(hostname)).map((message) =>
      invalid(`${field}.hostname`, hostname, message),
    ),
    ...(nodeName === undefined ? [] : dnsSubdomain(nodeName)).map((message) =>
      invalid(`${field}.nodeName`, nodeName, message),
    ),
    ...endpointAddressCauses(`${field}.ip`, ip),
  ];
}

function onePort(
  { name = '', port, protocol }: EndpointPort,
  field: string,
  count: number,
): readonly FieldCause[] {
  const named = name === '' ? [] : dnsLabel(name);
  return [
    ...(name === '' && count > 1 ? [required(`${field}.name`)] : []),
    ...named.map((message) => invalid(`${field}.name`, name, message)),
    ...portCauses(`${field}.port`, port),
    ...oneOf(`${field}.protocol`, protocol, ['SCTP', 'TCP', 'UDP'], 'refused'),
  ];
}
