import type { ApiResource, JsonObject } from '../../../api/index.ts';
import type { ResourceEntry, StoredObject } from '../../api/index.ts';
import { type Printer, plainPrinter } from './column.ts';
import { eventPrinter } from './event.ts';
import { nodePrinter, usagePrinter } from './node.ts';
import { podPrinter } from './pod.ts';
import { endpointsPrinter, servicePrinter } from './service.ts';
import {
  configMapPrinter,
  disruptionBudgetPrinter,
  leasePrinter,
  namespacePrinter,
  priorityClassPrinter,
  quotaPrinter,
  runtimeClassPrinter,
  secretPrinter,
  serviceAccountPrinter,
  signingRequestPrinter,
} from './small-kinds.ts';
import {
  attachmentPrinter,
  claimPrinter,
  csiDriverPrinter,
  csiNodePrinter,
  storageClassPrinter,
  volumePrinter,
} from './storage.ts';

export interface TableOptions {
  /** Of the list, or of the one object: its version. */
  readonly metadata: JsonObject;
  /** What of each object comes with its row. */
  readonly includeObject: 'None' | 'Metadata' | 'Object';
  readonly nowMs: number;
  /** In a watch only the first table has its columns described. */
  readonly columns: 'with' | 'without';
}

/** Objects the way people read them: cells made here, so that every client shows the same. */
export function asTable(
  { resource }: ResourceEntry,
  objects: readonly StoredObject[],
  { metadata, includeObject, nowMs, columns }: TableOptions,
): JsonObject {
  const printer = printerOf(resource);
  return {
    kind: 'Table',
    apiVersion: 'meta.k8s.io/v1',
    metadata,
    columnDefinitions: columns === 'with' ? printer.columns : null,
    rows: objects.map((object) => {
      const cells = printer.cells(withName(object), nowMs);
      const conditions = printer.conditions?.(object);
      const shown = rowObject(object, includeObject);
      return conditions === undefined ? { cells, object: shown } : { cells, conditions, object: shown };
    }),
  };
}

/** A bookmark of a watch is an object without a name, and still gets its row. */
function withName(object: StoredObject): StoredObject {
  const { name = '', creationTimestamp = '' } = object.metadata as Partial<StoredObject['metadata']>;
  if (name !== '') return object;
  return { ...object, metadata: { ...object.metadata, name, creationTimestamp } };
}

/** The end of the first events of a watch is told in an object's annotation, which is therefore never left out. */
const initialEventsEnd = 'k8s.io/initial-events-end';

function rowObject(object: StoredObject, include: TableOptions['includeObject']): JsonObject | null {
  if (include === 'Object') return object;
  const marksEnd = object.metadata.annotations?.[initialEventsEnd] === 'true';
  return include === 'Metadata' || marksEnd ? partialOf(object) : null;
}

/** Only what all objects have in common. */
export function partialOf({ metadata }: JsonObject): JsonObject {
  return { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata: metadata ?? {} };
}

/** An object, or a list of them, cut down to metadata. */
export function asPartial(objectOrList: JsonObject): JsonObject {
  const { items, metadata } = objectOrList;
  if (!Array.isArray(items)) return partialOf(objectOrList);
  return {
    kind: 'PartialObjectMetadataList',
    apiVersion: 'meta.k8s.io/v1',
    metadata: metadata ?? {},
    items: items.map((item: JsonObject) => partialOf(item)),
  };
}

/** No two groups have different kinds of one name here. */
const printers: Readonly<Record<string, Printer>> = {
  Pod: podPrinter,
  Node: nodePrinter,
  Event: eventPrinter,
  Namespace: namespacePrinter,
  ServiceAccount: serviceAccountPrinter,
  ConfigMap: configMapPrinter,
  Secret: secretPrinter,
  Service: servicePrinter,
  Endpoints: endpointsPrinter,
  PersistentVolume: volumePrinter,
  PersistentVolumeClaim: claimPrinter,
  StorageClass: storageClassPrinter,
  VolumeAttachment: attachmentPrinter,
  CSINode: csiNodePrinter,
  CSIDriver: csiDriverPrinter,
  Lease: leasePrinter,
  RuntimeClass: runtimeClassPrinter,
  PriorityClass: priorityClassPrinter,
  CertificateSigningRequest: signingRequestPrinter,
  ResourceQuota: quotaPrinter,
  PodDisruptionBudget: disruptionBudgetPrinter,
  NodeMetrics: usagePrinter,
  PodMetrics: usagePrinter,
};

export function printerOf({ kind }: ApiResource): Printer {
  return printers[kind] ?? plainPrinter;
}
