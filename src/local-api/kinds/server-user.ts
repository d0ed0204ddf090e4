import type { ApiUser } from '../core/index.ts';

/** In whose name the server does what it does by itself. */
export const serverUser: ApiUser = {
  name: 'system:apiserver',
  groups: ['system:masters', 'system:authenticated'],
};
