import { apiResources } from '../../api/index.ts';
import type { ApiUser } from '../api/index.ts';
import { serverResources } from '../api/index.ts';

/** The resources that strategies and controllers use. */
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

/** The user for requests that the server itself makes. */
export const serverUser: ApiUser = {
  name: 'system:apiserver',
  groups: ['system:masters', 'system:authenticated'],
};
