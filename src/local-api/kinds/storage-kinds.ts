import { type JsonObject, sameValue } from '../../api/index.ts';
import type { CSIDriver, CSINode, CSINodeDriver, StorageClass, VolumeAttachment } from '../../kinds/index.ts';
import { dnsSubdomain, qualifiedName } from '../../pods/validation/index.ts';
import type { FieldCause, ResourceStrategy, StoredObject, WriteContext } from '../api/index.ts';
import {
  duplicate,
  forbiddenField,
  immutable,
  invalid,
  notSupported,
  oneOf,
  required,
  tooLong,
} from '../validation/causes.ts';
import { validatorFor } from '../validation/metadata.ts';

const mostParameterBytes = 256 * 1024;
const mostParameters = 512;
const longestNodeId = 256;
const longestDriver = 63;

export const storageClassStrategy: ResourceStrategy = {
  prepare: (object) => {
    const { reclaimPolicy = 'Delete', volumeBindingMode = 'Immediate' } = object as unknown as StorageClass;
    return { ...object, reclaimPolicy, volumeBindingMode };
  },
  validate: validatorFor(dnsSubdomain, storageClassCauses, (object, { before }) =>
    before === undefined
      ? []
      : ['parameters', 'provisioner', 'reclaimPolicy', 'volumeBindingMode'].flatMap((field) =>
          immutable(field, before[field], object[field]),
        ),
  ),
};

function storageClassCauses(object: StoredObject): readonly FieldCause[] {
  const {
    provisioner,
    parameters = {},
    reclaimPolicy,
    volumeBindingMode,
  } = object as unknown as StorageClass;
  const named =
    provisioner === ''
      ? [required('provisioner')]
      : qualifiedCauses('provisioner', provisioner.toLowerCase());
  return [
    ...named,
    ...parameterCauses(parameters),
    ...oneOf('reclaimPolicy', reclaimPolicy, ['Delete', 'Retain']),
    ...oneOf('volumeBindingMode', volumeBindingMode, ['Immediate', 'WaitForFirstConsumer'], 'refused'),
  ];
}

function qualifiedCauses(field: string, name: string): readonly FieldCause[] {
  return qualifiedName(name).map((message) => invalid(field, name, message));
}

function parameterCauses(parameters: Readonly<Record<string, string>>): readonly FieldCause[] {
  const field = 'parameters';
  const entries = Object.entries(parameters);
  if (entries.length > mostParameters) return [tooLong(field, mostParameters)];
  const bytes = entries.flat().reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  return [
    ...(Object.hasOwn(parameters, '') ? [invalid(field, '', 'field can not be empty.')] : []),
    ...(bytes > mostParameterBytes ? [tooLong(field, mostParameterBytes)] : []),
  ];
}

export const csiNodeStrategy: ResourceStrategy = {
  unconditionalUpdate: 'refused',
  validate: validatorFor(dnsSubdomain, csiNodeCauses),
};

function driversOf(object: StoredObject | undefined): readonly CSINodeDriver[] {
  return (object as unknown as CSINode | undefined)?.spec?.drivers ?? [];
}

function csiNodeCauses(object: StoredObject, { before }: WriteContext): readonly FieldCause[] {
  const drivers = driversOf(object);
  const known = new Map(driversOf(before).map((driver) => [driver.name, driver]));
  return [
    ...drivers.flatMap((driver, index) => driverCauses(driver, `spec.drivers[${index}]`)),
    ...drivers.flatMap((driver, index) =>
      drivers.findIndex(({ name }) => name === driver.name) < index
        ? [duplicate(`spec.drivers[${index}].name`, driver.name)]
        : [],
    ),
    ...drivers.flatMap((driver) => driverChange(known.get(driver.name), driver)),
  ];
}

/** Only the field `allocatable` of a CSINode driver may change. */
function driverChange(before: CSINodeDriver | undefined, after: CSINodeDriver): readonly FieldCause[] {
  if (before === undefined) return [];
  const { allocatable: _, ...was } = before;
  const { allocatable: __, ...is } = after;
  return immutable('spec.drivers', was, is);
}

function driverCauses(
  { name, nodeID, topologyKeys = [], allocatable }: CSINodeDriver,
  field: string,
): readonly FieldCause[] {
  const count = allocatable?.count ?? 0;
  return [
    ...driverNameCauses(`${field}.name`, name),
    ...(nodeID === '' ? [required(`${field}.nodeID`)] : []),
    ...(nodeID.length > longestNodeId
      ? [invalid(`${field}.nodeID`, nodeID, `must be ${longestNodeId} characters or less`)]
      : []),
    ...(count < 0
      ? [invalid(`${field}.allocatable.count`, count, 'must be greater than or equal to 0')]
      : []),
    ...topologyKeys.flatMap((key, index) => [
      ...(key === '' ? [required(field)] : []),
      ...(topologyKeys.indexOf(key) < index ? [duplicate(field, key)] : []),
      ...qualifiedCauses(field, key),
    ]),
  ];
}

function driverNameCauses(field: string, name: string): readonly FieldCause[] {
  if (name === '') return [required(field)];
  return [
    ...(name.length > longestDriver ? [tooLong(field, longestDriver)] : []),
    ...dnsSubdomain(name.toLowerCase()).map((message) => invalid(field, name, message)),
  ];
}

export const csiDriverStrategy: ResourceStrategy = {
  unconditionalUpdate: 'refused',
  // A new CSIDriver has no generation, unlike objects of other kinds, so `prepare` counts the
  // generation.
  generation: 'none',
  prepare: preparedDriver,
  validate: validatorFor(dnsSubdomain, csiDriverCauses),
};

function preparedDriver(object: StoredObject, { before }: WriteContext): StoredObject {
  const modes = (object.spec?.['volumeLifecycleModes'] ?? []) as readonly string[];
  const spec: JsonObject = {
    attachRequired: true,
    podInfoOnMount: false,
    storageCapacity: false,
    fsGroupPolicy: 'ReadWriteOnceWithFSType',
    requiresRepublish: false,
    seLinuxMount: false,
    ...object.spec,
    volumeLifecycleModes: modes.length === 0 ? ['Persistent'] : modes,
  };
  if (before === undefined || sameValue(before.spec, spec)) return { ...object, spec };
  const generation = (before.metadata.generation ?? 0) + 1;
  return { ...object, spec, metadata: { ...object.metadata, generation } };
}

function csiDriverCauses(object: StoredObject, { before }: WriteContext): readonly FieldCause[] {
  const { spec } = object as unknown as CSIDriver;
  const old = (before as unknown as CSIDriver | undefined)?.spec;
  const modes = spec.volumeLifecycleModes ?? [];
  const period = spec.nodeAllocatableUpdatePeriodSeconds ?? 10;
  return [
    ...oneOf('spec.fsGroupPolicy', spec.fsGroupPolicy, ['File', 'None', 'ReadWriteOnceWithFSType']),
    ...tokenCauses(spec.tokenRequests ?? []),
    ...modes.flatMap((mode) =>
      ['Persistent', 'Ephemeral'].includes(mode)
        ? []
        : [notSupported('spec.volumeLifecycleModes', mode, ['Persistent', 'Ephemeral'])],
    ),
    ...(period < 10
      ? [
          invalid(
            'spec.nodeAllocatableUpdatePeriodSeconds',
            period,
            'must be greater than or equal to 10 seconds',
          ),
        ]
      : []),
    ...(old === undefined
      ? []
      : [
          ...immutable('spec.attachedRequired', old.attachRequired, spec.attachRequired),
          ...immutable('spec.volumeLifecycleModes', old.volumeLifecycleModes, modes),
        ]),
  ];
}

function tokenCauses(
  requests: readonly { readonly audience: string; readonly expirationSeconds?: number | undefined }[],
): readonly FieldCause[] {
  return requests.flatMap(({ audience, expirationSeconds: seconds = 600 }, index) => {
    const field = `spec.tokenRequests[${index}]`;
    const isTwin = requests.findIndex((other) => other.audience === audience) < index;
    if (isTwin) return [duplicate(`${field}.audience`, audience)];
    return seconds < 600
      ? [invalid(`${field}.expirationSeconds`, seconds, 'may not specify a duration less than 10 minutes')]
      : [];
  });
}

export const volumeAttachmentStrategy: ResourceStrategy = {
  status: 'separate',
  unconditionalUpdate: 'refused',
  prepare: (object, { before }) =>
    before === undefined ? { ...object, status: { attached: false } } : object,
  validate: validatorFor(dnsSubdomain, attachmentCauses, (object, { before }) =>
    before === undefined ? [] : immutable('spec', before.spec, object.spec),
  ),
};

function attachmentCauses(object: StoredObject): readonly FieldCause[] {
  const { spec } = object as unknown as VolumeAttachment;
  const { persistentVolumeName: volume, inlineVolumeSpec: inline } = spec.source;
  const detail = 'must specify exactly one of inlineVolumeSpec and persistentVolumeName';
  return [
    ...driverNameCauses('spec.attacher', spec.attacher),
    ...(volume === undefined && inline === undefined ? [required('spec.source', detail)] : []),
    ...(volume !== undefined && inline !== undefined ? [forbiddenField('spec.source', detail)] : []),
    ...dnsSubdomain(spec.nodeName).map((message) => invalid('spec.nodeName', spec.nodeName, message)),
    ...(volume === undefined ? [] : dnsSubdomain(volume)).map((message) =>
      invalid('spec.source.persistentVolumeName', volume, message),
    ),
  ];
}
