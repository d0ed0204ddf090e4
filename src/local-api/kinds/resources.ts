import { apiResources } from '../../api/index.ts';
import type { ApiUser } from '../api/index.ts';
import { localResources } from '../api/index.ts';

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

/** In whose name the server does what it does by itself. */
export const serverUser: ApiUser = {
  name: 'system:apiserver',
  groups: ['system:masters', 'system:authenticated'],
};
