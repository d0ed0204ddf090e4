import { apiResources } from '../../api/index.ts';
import type { ApiUser } from '../api/index.ts';
import { serverResources } from '../api/index.ts';

/** The resources that strategies and controllers refer to. */
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

export const { namespaces, endpoints, priorityClasses, storageClasses } = serverResources;

/** The user of requests of the server itself. */
export const serverUser: ApiUser = {
  name: 'system:apiserver',
  groups: ['system:masters', 'system:authenticated'],
};
