# The libraries as imported targets; read by netCDFConfig.cmake.
get_filename_component(_netCDF_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET netCDF::netcdf)
  add_library(netCDF::netcdf SHARED IMPORTED)
  set_target_properties(netCDF::netcdf PROPERTIES
    IMPORTED_LOCATION "${_netCDF_prefix}/lib/libnetcdf.so.19"
    IMPORTED_SONAME "libnetcdf.so.19"
    INTERFACE_INCLUDE_DIRECTORIES "${_netCDF_prefix}/include")
endif()
# The name that releases before 4.8 exported.
if(NOT TARGET netcdf)
  add_library(netcdf INTERFACE IMPORTED)
  set_property(TARGET netcdf PROPERTY INTERFACE_LINK_LIBRARIES netCDF::netcdf)
endif()
unset(_netCDF_prefix)
