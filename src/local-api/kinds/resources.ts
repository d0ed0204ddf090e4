import { apiResources } from '../../api/index.ts';
import { localResources } from '../core/index.ts';

/** The resources rules and loops here look at. */
export const {
  pods,
  nodes,
  events,
  services,
  secrets,
  configMaps,
  serviceAccounts,
  persistentVolumes,
  persistentVolumeClaims,
  certificateSigningRequests,
  csiDrivers,
} = apiResources;

export const { namespaces, endpoints, priorityClasses, storageClasses } = localResources;
