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
  /** The resource version of the list or object. */
  readonly metadata: JsonObject;
  /** Which part of its object each row includes. */
  readonly includeObject: 'None' | 'Metadata' | 'Object';
  readonly nowMs: number;
  /** Whether the table has column definitions; in a watch only the first one has. */
  readonly columns: 'with' | 'without';
}

/** Renders objects as a Table (kubectl get). */
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

/** A bookmark has no name, but gets a row too. */
function withName(object: StoredObject): StoredObject {
  const { name = '', creationTimestamp = '' } = object.metadata as Partial<StoredObject['metadata']>;
  if (name !== '') return object;
  return { ...object, metadata: { ...object.metadata, name, creationTimestamp } };
}

/** The bookmark keeps its annotations, because one of them marks the end of the initial events. */
const initialEventsEnd = 'k8s.io/initial-events-end';

function rowObject(object: StoredObject, include: TableOptions['includeObject']): JsonObject | null {
  if (include === 'Object') return object;
  const marksEnd = object.metadata.annotations?.[initialEventsEnd] === 'true';
  return include === 'Metadata' || marksEnd ? partialOf(object) : null;
}

/** Returns the PartialObjectMetadata of an object. */
function partialOf({ metadata }: JsonObject): JsonObject {
  return { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata: metadata ?? {} };
}

/** Converts an object or a list to PartialObjectMetadata. */
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

/** The printers by kind; kinds are unique across the groups here. */
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

function printerOf({ kind }: ApiResource): Printer {
  return printers[kind] ?? plainPrinter;
}
