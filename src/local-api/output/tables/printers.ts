import type { ApiResource } from '../../../api/index.ts';
import { type Printer, plainPrinter } from './column.ts';
import { eventPrinter } from './event.ts';
import { nodePrinter } from './node.ts';
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
import { usagePrinter } from './usage.ts';

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
