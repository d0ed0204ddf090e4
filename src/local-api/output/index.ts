export { publicPages } from './public-pages.ts';
export {
  type PublicAnswer,
  type PublicRoutes,
  type PublicRoutesOptions,
  publicRoutes,
} from './public-routes.ts';
export { ageOf, shortDuration } from './tables/age.ts';
export { asPartial } from './tables/partial.ts';
export { asTable, type TableWish } from './tables/table.ts';
export { type VersionFacts, type VersionSources, versionFacts } from './version.ts';
